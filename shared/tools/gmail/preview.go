package gmail

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/address"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// preview shows the whole message: all recipients, copies included, and both bodies as they would be sent.
func preview(a Args) tool.Preview {
	v := view{Preview: tool.Preview{Title: fmt.Sprintf("Send an e-mail to %s", count(len(a.recipients())))}}
	v.addresses("To", a.To)
	v.addresses("Cc", a.Cc)
	v.addresses("Bcc", a.Bcc)
	v.text("Subject", a.Subject, false)
	v.text("Message", a.Body, true)
	if a.HTMLBody != "" {
		v.text("The same as HTML (source)", a.HTMLBody, true)
		v.warn("There is an HTML version too: most mail programs show it instead of the plain one. Check that both " +
			"say the same.")
	}
	v.links(a)
	if a.ThreadID != "" || a.InReplyTo != "" {
		v.Fields = append(v.Fields,
			tool.Field{Label: "Answers", Value: strings.TrimSpace(a.ThreadID + " " + a.InReplyTo)})
	}
	if strings.TrimSpace(a.Subject) == "" {
		v.warn("There is no subject.")
	}
	return v.Preview
}

func count(n int) string {
	if n == 1 {
		return "one person"
	}
	return fmt.Sprintf("%d people", n)
}

// view is a preview under construction.
type view struct{ tool.Preview }

func (v *view) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// addresses shows a punycode domain in both forms: the one that is used, and the one that a reader would see.
func (v *view) addresses(label string, list []string) {
	if len(list) == 0 {
		return
	}
	shown := make([]string, len(list))
	for i, a := range list {
		shown[i] = a
		if u, puny := address.Unicode(a); puny {
			u, _ = visible.Line(u)
			shown[i] = fmt.Sprintf("%s (shown as %s)", a, u)
			v.warn("%s: the domain of %s is written with letters from outside ASCII. It may only look like one "+
				"that you know.", label, a)
		}
	}
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: strings.Join(shown, "\n"), Long: len(list) > 1})
}

func (v *view) text(label, s string, long bool) {
	show := visible.Line
	if long {
		show = visible.Text
	}
	shown, hidden := show(s)
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: shown, Long: long})
	if hidden {
		v.warn("%s: there are characters that cannot be seen or that change the reading direction. They are written "+
			"out as ⟨U+…⟩.", label)
	}
	for _, w := range visible.Suspicious(s) {
		v.warn("%s: %s", label, w)
	}
}

// links lists the targets of a click, and what is fetched without one.
func (v *view) links(a Args) {
	var lead, load []string
	for _, l := range visible.Links(a.HTMLBody) {
		if l.Loads {
			load = append(load, l.Target)
		} else {
			lead = append(lead, l.Target)
		}
	}
	if len(lead) > 0 {
		v.Fields = append(v.Fields,
			tool.Field{Label: "Links in the HTML lead to", Value: strings.Join(lead, "\n"), Long: true})
	}
	if len(load) > 0 {
		v.Fields = append(v.Fields, tool.Field{Label: "Fetched from outside when the mail is opened",
			Value: strings.Join(load, "\n"), Long: true})
		v.warn("The HTML fetches images or other things from outside: their servers see who opens the mail, and can " +
			"be told more by the addresses above.")
	}
}
