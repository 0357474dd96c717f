package gmail

import (
	"html"
	"strings"

	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// sign returns the arguments with the user's signature, unless the e-mail ends with it already.
func (a Args) sign(signature string) Args {
	if a.Signature = signature; a.signed() == "" && a.signedHTML() == "" {
		a.Signature = ""
	}
	return a
}

// signed returns the signature below the user's words, or "" if these end with it. Mail programs hide what follows the
// line "-- ", so it announces the signature only if nothing is quoted below.
func (a Args) signed() string {
	switch {
	case a.Signature == "" || endsWith(a.Body, a.Signature):
		return ""
	case a.quote() != "":
		return "\n\n" + a.Signature
	}
	return "\n\n-- \n" + a.Signature
}

// signedHTML is signed for the HTML version.
func (a Args) signedHTML() string {
	if a.Signature == "" || a.HTMLBody == "" || endsWith(textOf(a.HTMLBody), a.Signature) {
		return ""
	}
	return "<br><br>\n" + strings.ReplaceAll(html.EscapeString(a.Signature), "\n", "<br>\n")
}

func endsWith(text, signature string) bool { return strings.HasSuffix(plain(text), plain(signature)) }

// plain returns a text with single spaces between its words, and without the line that announces a signature.
func plain(text string) string {
	var words []string
	for line := range strings.Lines(norm.NFC.String(text)) {
		if strings.TrimSpace(line) != "--" {
			words = append(words, strings.Fields(line)...)
		}
	}
	return " " + strings.Join(words, " ")
}

// textOf returns the words of an HTML text. A tag that begins or ends a line separates words.
func textOf(source string) string {
	var b strings.Builder
	for z := nethtml.NewTokenizer(strings.NewReader(source)); ; {
		switch z.Next() {
		case nethtml.ErrorToken:
			return b.String()
		case nethtml.TextToken:
			b.Write(z.Text())
		case nethtml.StartTagToken, nethtml.EndTagToken, nethtml.SelfClosingTagToken:
			if name, _ := z.TagName(); !inline(atom.Lookup(name)) {
				b.WriteByte('\n')
			}
		}
	}
}

// inline reports whether the tag is within a word or a line.
func inline(tag atom.Atom) bool {
	switch tag {
	case atom.A, atom.Abbr, atom.B, atom.Code, atom.Em, atom.Font, atom.I, atom.Mark, atom.S, atom.Small, atom.Span,
		atom.Strong, atom.Sub, atom.Sup, atom.U:
		return true
	}
	return false
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
