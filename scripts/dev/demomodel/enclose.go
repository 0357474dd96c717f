package demomodel

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// This file handles e-mails with the files that the user has attached: “send the report to ken@example.org”, and “email
// ken@example.org with the file”. Without files in the conversation, the other rules for e-mails apply.

const (
	aThing = " [(the|my|this|that|these|our)] [attached] {what|this|it|them|report|reports|file|files|document|" +
		"documents|pdf|photo|photos|picture|pictures|slides|presentation|spreadsheet|invoice|contract|offer|" +
		"attachment|attachments} "
	alongside = " [with] [(the|this|that|my)] [attached] " +
		"(file|files|attachment|attachments|pdf|picture|photo) [attached] "
	sending = " (send|email|e-mail|mail) "
)

// enclosingRules are tried before the other rules for e-mails.
var enclosingRules = []rule{{
	phrases: phrases(
		sending+aThing+" to {to}"+copies+"["+alongside+"] [[and] "+saying+"{body}]",
		sending+"{to}"+aThing+copies+"[[and] "+saying+"{body}]",
		mailing+"["+aMail+"] [(to|for)] {to}"+copies+"with"+alongside+"[[and] "+saying+"{body}]",
	),
	call: enclosing, tool: mailTool, joins: true, about: aboutMail, done: "sent",
}}

// enclosing attaches the newest files of the user to an e-mail. It declines if there is no file.
func enclosing(a *ask) (any, string) {
	if len(a.files) == 0 {
		return nil, ""
	}
	m := &mailArgs{To: a.slots["to"].addresses(), Cc: a.slots["cc"].addresses(), Bcc: a.slots["bcc"].addresses()}
	if len(a.since.people) > 0 {
		m.To, m.Cc, m.Bcc = a.since.people, nil, nil
	}
	for _, name := range a.files {
		m.Attachments = append(m.Attachments, enclosure{name})
	}
	what := a.slot("what", "")
	if pronoun.MatchString(what) {
		what = a.files[0]
	}
	m.Subject = cmp.Or(a.since.name, firstUp(what))
	m.write(a.body())
	if m.Body == "" {
		m.Body = "Here is " + strings.Join(a.files, ", ") + "."
	}
	return m, ""
}

// enclosure is a file of gmail_send.
type enclosure struct {
	File string `json:"file"`
}

// attached matches the server's line about a file, with its quoted name: before the file's own prompt, and in the
// record of an earlier prompt.
var attached = lazyregexp.New(`^(?:\[The|\[record [a-z0-9]+\] With the request above the) user attached the file ` +
	`("(?:[^"\\]|\\.)*")`)

// attachedIn returns the name of the file that the text is about.
func attachedIn(s string) (name string, ok bool) {
	m := attached.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	name, err := strconv.Unquote(m[1])
	return name, err == nil
}
