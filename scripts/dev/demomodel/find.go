package demomodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const findTool = "gmail_search"

// findArgs holds the arguments of gmail_search.
type findArgs struct {
	Query string `json:"query"`
}

const (
	letters = `mail|mails|email|emails|e-mail|e-mails|message|messages`
	wrote   = `write|written|mail|mailed|email|emailed|reply|replied|answer|answered`
)

// findRules match questions about received e-mails.
var findRules = []rule{{
	phrases: phrases("(any|are there any|is there any|is there a|do i have any|do i have a|do i have|have i got any|"+
		"did i get any|did i get a|what|what are the|what are my) [(new|recent|latest|newest|last|other)] "+
		"("+letters+") [{rest}]",
		"(find|search for|search|look for|show|list|read|get|open) [me] [all] [(the|my|any|a|an|all)] "+
			"[(new|recent|latest|newest|last|other)] ("+letters+"|inbox|mailbox) [{rest}]",
		"(what is|what's|whats|anything|is anything|is there anything) [new] in my "+
			"("+letters+"|inbox|mailbox) [{rest}]",
		"(did|has|have) {who} ("+wrote+") [(to me|to us|me|us|back)] [{rest}]"),
	call: find, tool: findTool, questions: true, joins: true,
	about: func(json.RawMessage) string { return "your mail" }, done: "searched", tell: tellMails,
}}

var (
	sender = lazyregexp.New(`(?i)(?:^|\s)(?:from|by)\s+(\S.*?)(?:\s+(?:about|regarding|concerning|on)\s|$)`)
	topics = lazyregexp.New(`(?i)(?:^|\s)(?:about|regarding|concerning|for|on|with|mentioning|containing|` +
		`that\s+(?:says?|mentions?))\s+(\S.*?)(?:\s+(?:from|by)\s|$)`)
	ofToday = lazyregexp.New(`(?i)(?:^|\s)(?:(?:from|of|since)\s+)?today\b`)
	onlyNew = lazyregexp.New(`(?i)^(?:in\s+my\s+(?:inbox|mailbox)|yet|now|for\s+me|again)?$`)
)

// find returns the search for e-mails.
func find(a *ask) (any, string) {
	if a.tool(findTool) == nil {
		return nil, ""
	}
	var terms []string
	rest := a.slots["rest"].trim()
	rest.raw = strings.TrimRight(rest.raw, " ?.!")
	said := rest.raw
	if ofToday.MatchString(said) {
		terms = append(terms, "after:"+a.now.Format("2006/01/02"))
		said = strings.TrimSpace(ofToday.ReplaceAllString(said, " "))
	}
	if w := findWhen(read(said), a.now); w.some() || vague.MatchString(said) {
		return &findArgs{}, "I can search mail by who sent it, by its words, and for today's alone. I did not " +
			"understand “" + excerpt(said, 80) + "”, so I did nothing."
	}
	who, about := sender.FindStringSubmatch(said), topics.FindStringSubmatch(said)
	by := plainWords(a.slot("who", ""))
	if who != nil {
		by = plainWords(who[1])
	}
	if by != "" {
		terms = append(terms, "from:"+quoted(by))
	}
	if about != nil && plainWords(about[1]) != "" {
		terms = append(terms, plainWords(about[1]))
	}
	switch {
	case len(terms) == 0 && !onlyNew.MatchString(said), who == nil && about == nil && len(terms) > 0 && remains(said):
		return &findArgs{}, unread(rest.raw)
	case len(terms) == 0:
		terms = []string{"in:inbox"}
	}
	return &findArgs{strings.Join(terms, " ")}, ""
}

// quoted returns a value as one term of a search.
func quoted(s string) string {
	if strings.Contains(s, " ") {
		return `"` + s + `"`
	}
	return s
}

// tellMails lists the e-mails that were found. Their subjects and texts are quoted, because strangers wrote them.
func tellMails(d *dialogue, s step) string {
	var f findArgs
	var got struct {
		Mails []struct{ From, Subject, Date, Snippet string }
		More  bool
	}
	if !s.reads(&f, &got) {
		return "The mailbox's answer is unclear."
	}
	what := "your mail for “" + excerpt(f.Query, 80) + "”"
	if len(got.Mails) == 0 {
		return "I searched " + what + " and found nothing."
	}
	var lines []string
	for _, m := range got.Mails[:min(len(got.Mails), maxLines)] {
		at, err := time.Parse(time.RFC3339, m.Date)
		line := "- "
		if err == nil {
			line += at.In(d.now.Location()).Format("Mon 2 Jan 15:04") + ", "
		}
		line += fmt.Sprintf("%s: “%s”", excerpt(m.From, 120), excerpt(m.Subject, 80))
		if m.Snippet != "" {
			line += ", which begins “" + excerpt(m.Snippet, 80) + "”"
		}
		lines = append(lines, line)
	}
	if got.More {
		lines = append(lines, "- and more")
	}
	return "I searched " + what + ", the newest first:\n" + strings.Join(lines, "\n")
}
