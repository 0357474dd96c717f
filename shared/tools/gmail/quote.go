package gmail

import (
	"html"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// maxQuote is the length of the quoted text in bytes. Longer texts are cut.
const maxQuote = 24 << 10

// quotation returns the text of an answered e-mail, as mail programs quote it.
func quotation(l Letter) string {
	if l.Text == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("On " + l.Date + ", " + l.From + " wrote:")
	for line := range strings.SplitSeq(clip.Lines(l.Text, maxQuote), "\n") {
		b.WriteString("\n> " + line)
	}
	return b.String()
}

// passedOn returns a forwarded e-mail, as mail programs write it.
func passedOn(l Letter) string {
	return "---------- Forwarded message ---------\nFrom: " + l.From + "\nDate: " + l.Date + "\nSubject: " + l.Subject +
		"\nTo: " + strings.Join(l.To, ", ") + "\n\n" + clip.Lines(l.Text, maxQuote)
}

// quote returns what follows the user's words in the sent text.
func (a Args) quote() string {
	if a.Origin == nil || a.Origin.Quote == "" {
		return ""
	}
	return "\n\n" + a.Origin.Quote
}

func (a Args) quoteHTML() string {
	if a.Origin == nil || a.Origin.Quote == "" {
		return ""
	}
	return "<blockquote>" + strings.ReplaceAll(html.EscapeString(a.Origin.Quote), "\n", "<br>\n") + "</blockquote>"
}

// references returns the Message-IDs of the conversation before the answered e-mail.
func (a Args) references() []string {
	if a.Origin == nil {
		return nil
	}
	return slices.Clone(a.Origin.References)
}

// addOrigin shows the e-mail that is answered or forwarded, why the e-mail goes to its recipients, and the text that
// leaves with it.
func addOrigin(p *tool.Preview, a Args) {
	o := a.Origin
	label := "Answers"
	if a.Forward != nil {
		label = "Forwards"
	}
	p.AddText(label, "“"+o.Subject+"”, from "+o.From+", "+o.Date)
	p.NameMoments(tool.StampMoment(o.Date)...)
	if o.Because != "" {
		p.AddLine("Goes to them because", o.Because)
		if o.redirected() {
			p.Warn("The reply does not go to the sender: %s.", o.Because)
		}
	}
	if a.ReplyTo != nil && !(slices.Equal(a.To, o.To) && slices.Equal(a.Cc, o.Cc) && len(a.Bcc) == 0) {
		p.Warn("The recipients differ from those of the original e-mail: %s.",
			strings.Join(slices.Concat(o.To, o.Cc), ", "))
	}
	if o.Quote != "" {
		p.AddText("Sent below your text", o.Quote)
	}
	if len(o.Left) > 0 {
		p.Warn("The attachments of the forwarded e-mail are not sent: %s.", strings.Join(o.Left, ", "))
	}
}
