package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// AddField adds a value that the server made, such as a time.
func (p *Preview) AddField(label, value string) {
	p.Fields = append(p.Fields, Field{Label: label, Value: value, Long: strings.Contains(value, "\n")})
}

// AddLine adds a text of one line in visible form ([visible.Line]), with warnings about hidden characters.
func (p *Preview) AddLine(label, s string) {
	shown, hidden := visible.Line(s)
	p.addText(Field{Label: label, Value: shown}, s, hidden)
}

// AddText adds a text of several lines in visible form ([visible.Text]), with warnings about hidden characters.
func (p *Preview) AddText(label, s string) {
	shown, hidden := visible.Text(s)
	p.addText(Field{Label: label, Value: shown, Long: true}, s, hidden)
}

// NameMoments sets the points in time that the value of the newest field names.
func (p *Preview) NameMoments(moments ...Moment) { p.Fields[len(p.Fields)-1].Moments = moments }

// AddDiff adds a unified diff in visible form, with warnings about hidden characters. A folded one is opened on demand.
func (p *Preview) AddDiff(label, diff string, folded bool) {
	shown, hidden := visible.Text(diff)
	p.addText(Field{Label: label, Value: shown, Long: true, Diff: true, Folded: folded}, diff, hidden)
}

// longText is the length in bytes above which a value gets its own lines.
const longText = 100

// AddValue adds a JSON value in visible form. A string is shown as it is, any other value as JSON.
func (p *Preview) AddValue(label string, raw json.RawMessage) {
	text := string(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		text = s
	}
	if strings.ContainsAny(text, "\n\t") || len(text) > longText {
		p.AddText(label, text)
	} else {
		p.AddLine(label, text)
	}
}

func (p *Preview) addText(f Field, s string, hidden bool) {
	f.Label, _ = visible.Line(f.Label)
	p.Fields = append(p.Fields, f)
	if hidden {
		p.warnOfHidden(f.Label)
	}
	for _, w := range visible.Suspicious(s) {
		p.Warn("%s: %s", f.Label, w)
	}
}

func (p *Preview) warnOfHidden(label string) {
	p.Warn("%s: there are characters that cannot be seen or that change the reading direction. They are "+
		"written out as "+
		"⟨U+…⟩.", label)
}

// reveal makes hidden characters visible in the parts of the preview that a tool's own code added unchanged, and adds
// warnings about them. Text that is in visible form already stays as it is.
func (p *Preview) reveal() {
	if title, hidden := visible.Line(p.Title); hidden {
		p.Title = title
		p.warnOfHidden("The title")
	}
	p.Fields = slices.Clone(p.Fields)
	for i, f := range p.Fields {
		p.Fields[i].Label, _ = visible.Line(f.Label)
		if value, hidden := visible.Text(f.Value); hidden {
			p.Fields[i].Value = value
			p.warnOfHidden(p.Fields[i].Label)
		}
	}
	for i, w := range p.Warnings {
		if warning, hidden := visible.Line(w); hidden {
			p.Warnings[i] = warning
		}
	}
}

// AddAddresses adds e-mail addresses, one a line, or nothing if the list is empty. A punycode domain is shown in both
// forms, the real one and the one that readers would see, with a warning.
func (p *Preview) AddAddresses(label string, list []string) {
	if len(list) == 0 {
		return
	}
	shown := make([]string, len(list))
	for i, a := range list {
		shown[i] = a
		if u, puny := address.Unicode(a); puny {
			u, _ = visible.Line(u)
			shown[i] = fmt.Sprintf("%s (shown as %s)", a, u)
			p.Warn("%s: the domain of %s is written with letters from outside ASCII. It may only look like one "+
				"that you know.", label, a)
		}
	}
	p.AddField(label, strings.Join(shown, "\n"))
}

// Warn adds a sentence about a point that a careful reader should check.
func (p *Preview) Warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}
