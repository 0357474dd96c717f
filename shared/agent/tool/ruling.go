package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Ruling is what a tool says of one call, where the call and not the tool alone tells what it can do: a command. The
// operator's rules come before it.
type Ruling struct {
	Class  Class      // of this call, in place of the tool's; a call of ClassRead still is an effect, on the record
	Mode   RulingMode //
	ID     string     // of the rule that decided, for the audit: ^[a-z][a-z0-9_]{0,63}$
	Reason string     // for the user; it goes to the audit and the log too, so it has nothing of the arguments

	// Warnings are what a careful reader of the approval should look at twice, beside that of the class.
	Warnings []string

	// Confirm is what the console has its user type before a yes: the name of what may be destroyed; empty: nothing.
	Confirm string

	// Always is what the user may always allow; nil: the call is asked about each time.
	Always *Always

	// Facts are recorded in the audit, in each entry about the call: ids, names of kinds and numbers, and never text
	// of the arguments or the result ([Facts]).
	Facts Facts
}

// RulingMode says what becomes of a call.
type RulingMode string

// The values of RulingMode.
const (
	RuleAllow RulingMode = "allow" // unless it reaches people, who are asked about as ever
	RuleAsk   RulingMode = "ask"   // also where it reaches only people whom the user always allows
	RuleDeny  RulingMode = "deny"
)

// Always is one exact call that a user may always allow: these arguments in this place.
type Always struct {
	Key   string // the same for the same call only: the arguments that matter, and where it acts; it is hashed
	Shown string // the call as its user knows it, in the list of what they always allow
}

// Facts are short values that say nothing of a call's text: at most 8, each with a name as in [validFact].
type Facts map[string]string

const maxFacts = 8

var (
	validRule = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)
	validFact = lazyregexp.New(`^[a-z][A-Za-z0-9]{0,31}=[A-Za-z0-9_.:/+=@-]{0,128}$`)
)

// check returns an error that names the first fact that is more than a fact.
func (f Facts) check() error {
	if len(f) > maxFacts {
		return fmt.Errorf("%d facts; the limit is %d", len(f), maxFacts)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !validFact.MatchString(name + "=" + f[name]) {
			return fmt.Errorf("the fact %.32q is not a short value without spaces", name)
		}
	}
	return nil
}

// With returns the facts and those of more, which come first where both have one.
func (f Facts) With(more Facts) Facts {
	if len(more) == 0 {
		return f
	}
	all := maps.Clone(more)
	for name, value := range f {
		if _, known := all[name]; !known {
			all[name] = value
		}
	}
	return all
}

func (r Ruling) check() error {
	switch {
	case !slices.Contains([]Class{ClassRead, ClassChange, ClassDestructive, ClassOpaque}, r.Class):
		return fmt.Errorf("there is no class %q", r.Class)
	case !slices.Contains([]RulingMode{RuleAllow, RuleAsk, RuleDeny}, r.Mode):
		return fmt.Errorf("there is no mode %q", r.Mode)
	case !validRule.MatchString(r.ID):
		return fmt.Errorf("%q is no id of a rule", r.ID)
	case r.Always != nil && (r.Always.Key == "" || r.Always.Shown == ""):
		return fmt.Errorf("what is always allowed needs a key and words")
	}
	return r.Facts.check()
}

// Rules reports whether the tool says something of each call ([Def.Rule]).
func (t *Tool) Rules() bool { return t.has.rule }

// Rule returns what the tool says of the call, by the documents that Reads names, or nil if it says nothing of single
// calls. The call has neither a handle nor a place. After an error the call must not be carried out.
func (t *Tool) Rule(ctx context.Context, c Call) (_ *Ruling, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.rule {
		return nil, nil
	}
	r, err := t.rule(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("tool %s: an unusable ruling: %w", t.Name, err)
	}
	for i, w := range r.Warnings {
		r.Warnings[i], _ = visible.Line(w)
	}
	return &r, nil
}

// Warned returns the preview with what the ruling of the call says to a careful reader before its own warnings. Without
// a ruling it is the preview as it is.
func (p Preview) Warned(r *Ruling) Preview {
	if r == nil {
		return p
	}
	var first []string
	if warning := classWarnings[r.Class]; warning != "" {
		first = append(first, warning)
	}
	p.Warnings = slices.Concat(first, r.Warnings, p.Warnings)
	p.Confirm, _ = visible.Line(r.Confirm)
	return p
}

// Note returns what the audit says of the result of a call that was carried out, beside the ruling's facts. It has
// nothing where the tool says nothing, or more than a fact.
func (t *Tool) Note(args, result json.RawMessage) (f Facts) {
	defer func() {
		if recover() != nil {
			f = nil
		}
	}()
	if !t.has.note || len(result) == 0 {
		return nil
	}
	if f = t.note(args, result); f.check() != nil {
		return nil
	}
	return f
}
