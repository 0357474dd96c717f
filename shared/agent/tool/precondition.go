package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// A Precondition is a fact of the present state that a yes to a call rests on, such as whether a time is free. The
// call's card shows it, and the signature of the decision covers it. It is read again right before the call. If its
// value is then another one, the call is not made and its user is asked again.
type Precondition struct {
	Name  string `json:"name"`  // for the card, unique in the call: State, Your calendar at that time
	Value string `json:"value"` // for the card; a long value is shortened, and its hash is added
	// Fine means that a change to this value needs no new yes, such as a time that has become free. The card does not
	// show it.
	Fine bool `json:"fine,omitempty"`
	// Warnings tell a reader of the card what the value means. They are shown like those of Def.Warn.
	Warnings []Warning `json:"-"`
}

// The limits of the preconditions of a call.
const (
	MaxPreconditions   = 10
	maxPreconditionOf  = 80  // bytes of a name
	maxPreconditionIs  = 200 // bytes of a value
	shownOfLongValue   = 150
	hashDigitsOfAValue = 16
)

// Rests reports whether the tool has a Preconditions function.
func (t *Tool) Rests() bool { return t.has.preconditions }

// Preconditions reads what a yes to the call rests on, with hidden characters made visible. c.Args must come from
// Normalize, or from Complete if the tool completes its calls.
func (t *Tool) Preconditions(ctx context.Context, c Call) (all []Precondition, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.preconditions {
		return nil, nil
	}
	c.Output = io.Discard
	if all, err = t.preconditions(ctx, c); err != nil {
		return nil, err
	}
	if len(all) > MaxPreconditions {
		return nil, fmt.Errorf("%s: %d preconditions; the limit is %d", t.Name, len(all), MaxPreconditions)
	}
	for i, p := range all {
		name, _ := visible.Line(p.Name)
		all[i].Name, all[i].Value = clip.Text(name, maxPreconditionOf), valueOf(p.Value)
		if slices.ContainsFunc(all[:i], func(of Precondition) bool { return of.Name == all[i].Name }) {
			return nil, fmt.Errorf("%s: two preconditions have the name %q", t.Name, all[i].Name)
		}
		showWarnings(all[i].Warnings)
	}
	return all, nil
}

// valueOf returns a value as the card shows it. Two long values differ in their hash, wherever they differ.
func valueOf(v string) string {
	shown, _ := visible.Line(v)
	if len(shown) <= maxPreconditionIs {
		return shown
	}
	sum := sha256.Sum256([]byte(v))
	return clip.Text(shown, shownOfLongValue) + " (SHA-256 " + hex.EncodeToString(sum[:])[:hashDigitsOfAValue] + ")"
}

func (t *typed[In, Out]) preconditions(ctx context.Context, c Call) ([]Precondition, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return nil, err
	}
	return t.Preconditions(ctx, c, v)
}

// Changed describes each precondition that is no longer as its user saw it, with its old and its new value. Values that
// have become fine do not count.
func Changed(seen, now []Precondition) (all []Warning) {
	value := func(in []Precondition, name string) (Precondition, string) {
		i := slices.IndexFunc(in, func(p Precondition) bool { return p.Name == name })
		if i < 0 {
			return Precondition{}, "unknown"
		}
		return in[i], "“" + in[i].Value + "”"
	}
	for _, p := range now {
		old, shown := value(seen, p.Name)
		if p.Fine || old.Name == p.Name && old.Value == p.Value {
			continue
		}
		all = append(all, changed(p.Name, shown, "“"+p.Value+"”"))
	}
	for _, p := range seen {
		if _, shown := value(now, p.Name); shown == "unknown" && !p.Fine {
			all = append(all, changed(p.Name, "“"+p.Value+"”", shown))
		}
	}
	return all
}

// ChangedWarning tells a reader of the card that a value has changed since they saw the card before.
func ChangedWarning(name, old, now string) Warning {
	quoted := func(v string) string {
		if v = strings.TrimSpace(v); v == "" {
			return "empty"
		}
		shown, _ := visible.Line(v)
		return "“" + shown + "”"
	}
	return changed(name, quoted(old), quoted(now))
}

func changed(name, old, now string) Warning {
	return Warning{Text: fmt.Sprintf("This has changed since you were asked: %s. It was %s, and it is now %s.",
		strings.TrimSuffix(name, "."), old, now)}
}

// On returns the preview with a field for each precondition after its own fields. A value that is fine needs no look,
// and has no field.
func (p Preview) On(all []Precondition) Preview {
	p.Fields = slices.Clip(p.Fields)
	for _, c := range all {
		if !c.Fine {
			p.Fields = append(p.Fields, Field{Label: c.Name, Value: c.Value})
		}
	}
	return p
}

// SamePreconditions reports whether two lists have the same facts.
func SamePreconditions(a, b []Precondition) bool {
	return slices.EqualFunc(a, b, func(p, q Precondition) bool {
		return p.Name == q.Name && p.Value == q.Value && p.Fine == q.Fine
	})
}
