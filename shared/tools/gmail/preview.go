package gmail

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// preview shows the whole message: all recipients, copies included, and both bodies as they would be sent.
func preview(a Args) tool.Preview {
	p := tool.Preview{Title: fmt.Sprintf("Send an e-mail to %s", count(len(a.recipients())))}
	if a.From != "" {
		p.AddAddresses("Sent as", []string{a.From})
	}
	p.AddAddresses("To", a.To)
	p.AddAddresses("Cc", a.Cc)
	p.AddAddresses("Bcc", a.Bcc)
	p.AddLine("Subject", a.Subject)
	p.AddText("Message", a.Body)
	addSignature(&p, a)
	if a.HTMLBody != "" {
		p.AddText("The same as HTML (source)", a.HTMLBody)
		p.Warn("There is an HTML version too: most mail programs show it instead of the plain one. Check that both " +
			"say the same.")
	}
	addLinks(&p, a.HTMLBody)
	addEnclosures(&p, a)
	if a.Origin != nil {
		addOrigin(&p, a)
	} else if a.ThreadID != "" || a.InReplyTo != "" {
		p.AddField("Answers", strings.TrimSpace(a.ThreadID+" "+a.InReplyTo))
	}
	if strings.TrimSpace(a.Subject) == "" {
		p.Warn("There is no subject.")
	}
	return p
}

func count(n int) string {
	if n == 1 {
		return "one person"
	}
	return fmt.Sprintf("%d people", n)
}

// addLinks adds the targets of clicks, and the addresses that are fetched without a click.
func addLinks(p *tool.Preview, html string) {
	var lead, load []string
	for _, l := range visible.Links(html) {
		if l.Loads {
			load = append(load, l.Target)
		} else {
			lead = append(lead, l.Target)
		}
	}
	if len(lead) > 0 {
		p.Fields = append(p.Fields,
			tool.Field{Label: "Links in the HTML lead to", Value: strings.Join(lead, "\n"), Long: true})
	}
	if len(load) > 0 {
		p.Fields = append(p.Fields, tool.Field{Label: "Fetched from outside when the mail is opened",
			Value: strings.Join(load, "\n"), Long: true})
		p.Warn("The HTML fetches images or other things from outside: their servers see who opens the mail, and can " +
			"be sent more data by the addresses above.")
	}
}
