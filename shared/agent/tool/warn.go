package tool

import (
	"context"
	"io"
	"slices"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Warning is a fact about the present state that a reader of a call's card should know. The card shows it, and the
// approval does not cover it.
type Warning struct {
	Text    string   `json:"text"`
	Moments []Moment `json:"moments,omitempty"` // the parts of Text that name a point in time
	// Asks means that no permission that the user gave in advance covers the call, because of what Text says.
	Asks bool `json:"asks,omitempty"`
}

// maxWarnings is the maximum number of warnings of one call.
const maxWarnings = 10

// Warns reports whether the tool has a Warn function.
func (t *Tool) Warns() bool { return t.has.warn }

// Warn returns what a reader of the call's card should know of the present state, with hidden characters made visible.
// c.Args must come from Normalize, or from Complete if the tool completes its calls. With an error it returns the
// warnings that do not depend on what could not be read.
func (t *Tool) Warn(ctx context.Context, c Call) (all []Warning, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.warn {
		return nil, nil
	}
	c.Output = io.Discard
	all, err = t.warnings(ctx, c)
	all = all[:min(len(all), maxWarnings)]
	showWarnings(all)
	return all, err
}

// showWarnings makes hidden characters visible.
func showWarnings(all []Warning) {
	for i := range all {
		if text, hidden := visible.Line(all[i].Text); hidden { // text in visible form stays
			all[i].Text = text
		}
	}
}

func (t *typed[In, Out]) warnings(ctx context.Context, c Call) ([]Warning, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return nil, err
	}
	return t.Warn(ctx, c, v)
}

// With returns the preview with the warnings after its own.
func (p Preview) With(all []Warning) Preview {
	if len(all) == 0 {
		return p
	}
	p.Warnings, p.Moments = slices.Clone(p.Warnings), slices.Clone(p.Moments)
	for _, w := range all {
		p.Warnings = append(p.Warnings, w.Text)
		for _, m := range w.Moments {
			m.Of = w.Text
			p.Moments = append(p.Moments, m)
		}
	}
	return p
}
