package gmail

import (
	"html"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// sign returns the arguments with the user's signature, unless the text ends with it already.
func (a Args) sign(signature string) Args {
	a.Signature = signature
	if signature != "" && strings.HasSuffix(plain(a.Body), plain(signature)) {
		a.Signature = ""
	}
	return a
}

// plain returns a text with single spaces between its words, and without the line that announces a signature.
func plain(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "--" {
			words = append(words, strings.Fields(line)...)
		}
	}
	return " " + strings.Join(words, " ")
}

// signed returns the signature below the user's words. Mail programs hide what follows the line "-- ", so it announces
// the signature only if nothing is quoted below.
func (a Args) signed() string {
	switch {
	case a.Signature == "":
		return ""
	case a.quote() != "":
		return "\n\n" + a.Signature
	}
	return "\n\n-- \n" + a.Signature
}

func (a Args) signedHTML() string {
	if a.Signature == "" {
		return ""
	}
	return "<br><br>\n" + strings.ReplaceAll(html.EscapeString(a.Signature), "\n", "<br>\n")
}

// withoutSignature returns the arguments without the signature: the user wrote it, and no model.
func withoutSignature(a Args) (Args, []tool.Change) {
	a.Signature = ""
	return a, nil
}

// addSignature shows the signature, which is part of the mail.
func addSignature(p *tool.Preview, a Args) {
	if a.Signature == "" {
		return
	}
	p.AddText("Signature, from your preferences", a.Signature)
	p.Fields[len(p.Fields)-1].Argument = "signature"
}
