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

// CallPolicy is a tool's policy decision for one call. It is for tools whose calls differ in what they can do, such as
// commands. The operator's rules take precedence.
type CallPolicy struct {
	Class  Class    // class of this call, instead of the tool's; a call of ClassRead still counts as an effect
	Mode   CallMode //
	ID     string   // ID of the rule that decided, for the audit log: ^[a-z][a-z0-9_]{0,63}$
	Reason string   // for the user; also in the audit and other logs, so it must not contain arguments

	// Warnings are points that a careful reader of the approval should check, in addition to the warning of the class.
	Warnings []string

	// Confirm is text that the console requires the user to type before approving, such as the name of what may be
	// destroyed. Empty means nothing.
	Confirm string

	// Always describes the exact call that the user can always allow. Nil means that the user is asked each time.
	Always *Always

	// Facts are recorded in each audit entry about the call. They are IDs, names of kinds and numbers, never text from
	// the arguments or the result ([Facts]).
	Facts Facts
}

// CallMode is the decision about a call.
type CallMode string

// The values of CallMode.
const (
	RuleAllow CallMode = "allow" // runs without a question, unless it reaches people; for those the usual rules apply
	RuleAsk   CallMode = "ask"   // needs an approval, even if it reaches only people that the user always allows
	RuleDeny  CallMode = "deny"  // is refused
)

// Always is the set of calls that a user can always allow: one exact call, with these arguments on this account or
// host, or the whole tool.
type Always struct {
	Key   string // identifies the call: the arguments that matter, and the account or host; it is stored as a hash
	Shown string // the call as the user's always-allow list shows it
	Whole bool   // Key is the same for every call of the tool, so the permission covers all of them
}

// Facts are short values that reveal no text of a call. There are at most 8, each with a name; see [validFact].
type Facts map[string]string

const maxFacts = 8

var (
	validRule = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)
	validFact = lazyregexp.New(`^[a-z][A-Za-z0-9]{0,31}=[A-Za-z0-9_.:/+=@-]{0,128}$`)
)

// check returns an error if there are too many facts, or for the first fact that is not short and plain.
func (f Facts) check() error {
	if len(f) > maxFacts {
		return fmt.Errorf("%d facts; the limit is %d", len(f), maxFacts)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !validFact.MatchString(name + "=" + f[name]) {
			return fmt.Errorf("fact %.32q: must be a short value without spaces", name)
		}
	}
	return nil
}

// With returns the facts of both. If both have a name, the value from more wins.
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

func (r CallPolicy) check() error {
	switch {
	case !slices.Contains([]Class{ClassRead, ClassChange, ClassDestructive, ClassOpaque}, r.Class):
		return fmt.Errorf("unknown class %q", r.Class)
	case !slices.Contains([]CallMode{RuleAllow, RuleAsk, RuleDeny}, r.Mode):
		return fmt.Errorf("unknown mode %q", r.Mode)
	case !validRule.MatchString(r.ID):
		return fmt.Errorf("invalid rule ID %q", r.ID)
	case r.Always != nil && (r.Always.Key == "" || r.Always.Shown == ""):
		return fmt.Errorf("Always needs Key and Shown")
	}
	return r.Facts.check()
}

// Rules reports whether the tool has a policy for single calls ([Def.Rule]).
func (t *Tool) Rules() bool { return t.has.rule }

// Rule returns the tool's policy decision for the call, or nil if the tool has no policy for single calls. It may use
// the documents that Reads names. The call has neither a handle nor a place. After an error, the call must not run.
func (t *Tool) Rule(ctx context.Context, c Call) (_ *CallPolicy, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.rule {
		return nil, nil
	}
	r, err := t.rule(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("tool %s: invalid ruling: %w", t.Name, err)
	}
	for i, w := range r.Warnings {
		r.Warnings[i], _ = visible.Line(w)
	}
	return &r, nil
}

// Warned returns the preview with the ruling's warnings before its own. If r is nil, it returns the preview unchanged.
func (p Preview) Warned(r *CallPolicy) Preview {
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

// Note returns facts about the result of a completed call for the audit log, in addition to the ruling's facts. It
// returns nil if the tool reports none or reports invalid ones.
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
