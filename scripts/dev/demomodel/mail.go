package demomodel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const mailTool = "gmail_send"

// mailArgs holds the arguments of gmail_send.
type mailArgs struct {
	To      []string `json:"to"`
	Cc      []string `json:"cc,omitempty"`
	Bcc     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`

	Attachments []enclosure `json:"attachments,omitempty"`
}

const (
	mailing = " (email|e-mail|mail|message|tell|inform|notify|write|send|draft|compose|let|ask|remind|shoot|drop) "
	writing = " (write|send|draft|compose|shoot|drop) "
	aMail   = " [(a|an|the|my|another)] [(short|quick|brief|new|nice)] (email|e-mail|mail|message|note|letter|line) "
	reader  = "[" + aMail + "] [(to|for)] [(the list|the address)] {to}"
	blind   = " (bcc|bcc'ing|blind copy [to]|blind-copy) "
	copies  = " [[and] [with] [a] (cc|copy [to]|copying) {cc}] [[and] [please]" + blind + "{bcc}] "
	copies2 = " [[(and|please|with)] (cc|cc'ing|ccing|copy|copying|a copy to) {cc2}] " +
		"[[(and|please|with)]" + blind + "{bcc2}] "
	topic  = " (about|regarding|concerning|on the subject of|[with] [(a|the)] (subject|title) [line] [is]|titled|re) "
	saying = " ((that|which) says [that]|that|saying [that]|say [that]|to say [that]|" +
		"telling (them|him|her|everyone) [that]|(that|which) reads|reading|" +
		"[(with|and)] [(a|the)] (text|body|message|words)|" +
		"and (say|tell (them|him|her|everyone)) [that]|the following) "
)

// mailRules match requests for an e-mail.
var mailRules = []rule{{
	phrases: phrases(
		"… (remind|ask|tell) {to} not to {undone}"+copies2,
		"… remind {to} to {todo}"+copies2,
		"… ask {to} to {todo}"+copies2,
		"… tell {to} to {todo}"+copies2,
		"[(and|also|oh and)] tell {them} to {todo}"+copies2,
		"… thank {to} for {thanks}"+copies2,
		"… wish {to} {wishes}"+copies2,
		"… congratulate {to} on {feat}"+copies2,
		"… ask {to} {asks} {wonder}"+copies2,
		"…"+mailing+reader+copies+"["+aMail+"] asking {asks} {wonder}"+copies2,
		"…"+mailing+reader+copies+"["+aMail+"]"+topic+"{subject} ["+saying+"{body}]"+copies2,
		"…"+mailing+reader+copies+"["+aMail+"] [know] [[please] ("+saying+")] [{body}]"+copies2,
		"…"+writing+aMail+topic+"{subject} (to|for) {to}"+copies+"["+saying+"] [{body}]"+copies2,
		"…"+mailing+"["+aMail+"] ["+saying+"] {body} to {to} [{tail}]"+copies2,
		"(email|e-mail|mail|message|tell|inform|notify|let|remind|write [to]|send"+aMail+"to) {them} [know] "+
			"["+saying+"] {body}",
		"… ask {them} {asks} {wonder}",
		"…"+writing+aMail+"(to|for) {name} ["+topic+"{subject}] ["+saying+"{body}]",
		"…"+writing+aMail+"["+topic+"{subject}] ["+saying+"] [{body}]",
		"(tell|inform|notify|message|let|write to) {name} [know] that {body}",
		"(email|e-mail|mail) {whom} ("+topic+"{subject}|"+saying+"{body})",
		writing+"{name}"+aMail+"["+topic+"{subject}] ["+saying+"] [{body}]",
		"(email|e-mail|mail) [{whom}]",
	),
	call: mail, tool: mailTool, joins: true,
	about: aboutMail, done: "sent",
	example: "email ana@example.com that the demo is at ten",
}, {
	phrases:  phrases("{to} (that|saying [that]|about) {body}"),
	fallback: true, joins: true, goesOn: true, call: mail, tool: mailTool, about: aboutMail, done: "sent",
}}

// mail fills an e-mail from the request and from the user's later words about it.
func mail(a *ask) (any, string) {
	m := &mailArgs{To: a.slots["to"].addresses(), Cc: a.slots["cc"].addresses(), Bcc: a.slots["bcc"].addresses(),
		Subject: cmp.Or(a.since.name, a.slot("subject", ""))}
	if a.slots["them"].raw != "" {
		m.To = a.before.people()
	}
	if len(a.since.people) > 0 {
		m.To, m.Cc, m.Bcc = a.since.people, nil, nil
	}
	m.Cc, m.Bcc = append(m.Cc, a.since.cc...), append(m.Bcc, a.since.bcc...)
	if about, said, ok := strings.Cut(m.Subject, ": "); ok && a.slots["body"].raw == "" && a.since.name == "" {
		m.Subject = about
		m.write(read(said))
	} else if line, said, ok := strings.Cut(m.Subject, "\n"); ok {
		m.Subject = line
		m.write(read(said))
	}
	unwritten := a.unwritten()
	if unwritten == "" {
		m.write(a.body())
	}
	if m.Body == "" && m.Subject != "" {
		m.write(read("I am writing to you about " + strings.TrimRight(m.Subject, ".")))
	}
	switch doubt := a.doubtMail(a.now); {
	case doubt != "":
		return m, doubt
	case len(m.To) == 0:
		return m, "Who should get the mail? Please give an e-mail address; I am the offline demo model and " +
			"know no names."
	case unwritten != "" && fileName.MatchString(unwritten):
		m.Body = ""
		return m, attachNothing
	case unwritten != "":
		m.Body = ""
		return m, "I did not understand “" + excerpt(unwritten, 80) + "” as the text of the mail, and I write no " +
			"texts of my own. What should the mail to " + strings.Join(m.To, ", ") + " say?"
	case m.Body == "":
		return m, "What should the mail to " + strings.Join(m.To, ", ") + " say?"
	}
	return m, ""
}

// body returns the text of the e-mail.
func (a *ask) body() text {
	switch todo, wonder := a.slot("todo", ""), a.slot("wonder", ""); {
	case a.since.body != "":
		return read(a.since.body)
	case todo != "":
		return read("Please " + todo)
	case wonder != "":
		word := strings.ToLower(a.slot("asks", "whether"))
		return read("I would like to know " + strings.Replace(word, "if", "whether", 1) + " " + wonder)
	}
	for slot, begins := range map[string]string{"undone": "Please do not ",
		"thanks": "Thank you for ", "wishes": "I wish you ",
		"feat": "Congratulations on "} {
		if words := a.slot(slot, ""); words != "" {
			return read(begins + words)
		}
	}
	return a.slots["body"]
}

// people returns the recipients of a request.
func (a *ask) people() []string {
	switch args := a.args.(type) {
	case *mailArgs:
		return args.To
	case *eventArgs:
		return args.Attendees
	}
	return nil
}

var (
	pronoun    = lazyregexp.New(`(?i)^(?:it|this|that|them)?$`)
	pointing   = lazyregexp.New(`(?i)^(?:it|this|that|them),\s*`)
	sentence   = lazyregexp.New(`[.!?](?:\s|$)`)
	unfinished = lazyregexp.New(`[\pL\pN"”'’]$`)
	startsSo   = lazyregexp.New(`^` + oneAddress)
)

// write sets the body, as a sentence if it is not a quotation, and the subject if it has none yet.
func (m *mailArgs) write(t text) {
	s := pointing.ReplaceAllString(t.plain(), "")
	if pronoun.MatchString(s) {
		return
	}
	if s == t.trim().raw {
		if s = firstUp(s); unfinished.MatchString(s) && !strings.Contains(s, "\n") {
			s += "."
		}
	}
	m.Body = s
	if m.Subject == "" {
		m.Subject = headline(s)
	}
	m.Subject = firstUp(strings.TrimRight(m.Subject, ".,; "))
}

// firstUp capitalizes the first letter of a text, unless the text begins with an address.
func firstUp(s string) string {
	if startsSo.MatchString(s) {
		return s
	}
	return capitalise(s)
}

// headline returns the first sentence, on one line.
func headline(s string) string {
	end := sentence.FindStringIndex(s)
	if end != nil && strings.Count(s[:end[1]], "(") == strings.Count(s[:end[1]], ")") {
		s = strings.TrimRight(s[:end[1]], ". \n")
	}
	return excerpt(s, 70)
}

func aboutMail(args json.RawMessage) string {
	var m mailArgs
	_ = json.Unmarshal(args, &m) // the e-mail then has no recipient
	to := slices.Concat(m.To, m.Cc, m.Bcc)
	if len(to) > 3 {
		to = append(to[:2], "others")
	}
	if last := len(to) - 1; last > 0 {
		return "the mail to " + strings.Join(to[:last], ", ") + " and " + to[last]
	}
	return strings.TrimSuffix("the mail to "+strings.Join(to, ""), " to ")
}
