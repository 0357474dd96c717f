package demomodel

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

const mailTool = "gmail_send"

// mailArgs holds the arguments of gmail_send.
type mailArgs struct {
	To      []string `json:"to"`
	Cc      []string `json:"cc,omitempty"`
	Bcc     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body"`
}

const (
	mailing = " (email|e-mail|mail|message|tell|inform|notify|write|send|draft|compose|let|ask|remind) "
	writing = " (write|send|draft|compose) "
	aMail   = " [(a|an|the|my|another)] [(short|quick|brief|new|nice)] (email|e-mail|mail|message|note|letter) "
	copies  = " [[and] [with] [a] (cc|copy to|copying) {cc}] [[and] [please] bcc {bcc}] "
	copies2 = " [[(and|please|with)] cc {cc2}] [[(and|please|with)] bcc {bcc2}] "
	topic   = " (about|regarding|concerning|on the subject of|[with] [(a|the)] (subject|title) [line] [is]|titled|re) "
	saying  = " (that|saying [that]|say [that]|to say [that]|telling (them|him|her|everyone)|(that|which) " +
		"(says|reads)|reading|" +
		"[(with|and)] [(a|the)] (text|body|message|words)|and (say|tell (them|him|her|everyone))|the following) "
)

// mailRules know the forms of a request for a mail.
var mailRules = []rule{{
	phrases: phrases(
		"… remind {to} to {todo}"+copies2,
		"… ask {to} to {todo}"+copies2,
		"… ask {to} (if|whether) {wonder}"+copies2,
		"…"+mailing+"["+aMail+"] [(to|for)] {to}"+copies+"["+aMail+"]"+topic+"{subject} ["+saying+"{body}]"+copies2,
		"…"+mailing+"["+aMail+"] [(to|for)] {to}"+copies+"["+aMail+"] [know] [please] ["+saying+"] [{body}]"+copies2,
		"…"+writing+aMail+topic+"{subject} (to|for) {to}"+copies+"["+saying+"] [{body}]"+copies2,
		"…"+mailing+"["+aMail+"] ["+saying+"] {body} to {to} [{body2}]"+copies2,
		"…"+writing+aMail+"["+topic+"{subject}] ["+saying+"] [{body}]",
		"(email|e-mail|mail) {whom} ("+topic+"{subject}|"+saying+"{body})",
		"(email|e-mail|mail) [{whom}]",
	),
	call: mail, tool: mailTool, joins: true,
	about: aboutMail, done: "sent",
	example: "email ana@example.com that the demo is at ten",
}}

func mail(a *ask) (any, string) {
	m := &mailArgs{To: a.slots["to"].addresses(), Cc: a.slots["cc"].addresses(), Bcc: a.slots["bcc"].addresses(),
		Subject: a.slot("subject", "")}
	if about, said, ok := strings.Cut(m.Subject, ": "); ok && a.slots["body"].raw == "" {
		m.Subject = about
		m.write(read(said))
	}
	reply := a.reply
	if len(m.To) == 0 {
		m.To, reply = reply.addresses(), text{}
	}
	m.write(a.slots["body"])
	switch todo, wonder := a.slot("todo", ""), a.slot("wonder", ""); {
	case todo != "":
		m.write(read("Please " + todo))
	case wonder != "":
		m.write(read("I would like to know whether " + wonder))
	}
	if m.Body == "" {
		m.write(reply)
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
	case m.Body == "":
		return m, "What should the mail to " + strings.Join(m.To, ", ") + " say?"
	}
	return m, ""
}

var (
	pronoun    = regexp.MustCompile(`(?i)^(?:it|this|that|them)?$`)
	pointing   = regexp.MustCompile(`(?i)^(?:it|this|that|them),\s*`)
	sentence   = regexp.MustCompile(`[.!?](?:\s|$)`)
	punctuated = regexp.MustCompile(`[.!?…:)\]]$`)
)

// write sets the body, as a sentence if it is no quotation, and the subject where there is none yet.
func (m *mailArgs) write(t text) {
	s := pointing.ReplaceAllString(t.plain(), "")
	if pronoun.MatchString(s) {
		return
	}
	if s == t.trim().raw {
		if s = capitalise(s); !punctuated.MatchString(s) {
			s += "."
		}
	}
	m.Body = s
	if m.Subject == "" {
		m.Subject = headline(s)
	}
	m.Subject = capitalise(strings.TrimRight(m.Subject, ".,; "))
}

// headline returns the first sentence, on one line.
func headline(s string) string {
	if end := sentence.FindStringIndex(s); end != nil {
		s = strings.TrimRight(s[:end[1]], ". \n")
	}
	return excerpt(s, 70)
}

func aboutMail(args json.RawMessage) string {
	var m mailArgs
	_ = json.Unmarshal(args, &m) // it is the mail to nobody then
	to := slices.Concat(m.To, m.Cc, m.Bcc)
	if len(to) > 3 {
		to = append(to[:2], "others")
	}
	if last := len(to) - 1; last > 0 {
		return "the mail to " + strings.Join(to[:last], ", ") + " and " + to[last]
	}
	return strings.TrimSuffix("the mail to "+strings.Join(to, ""), " to ")
}
