package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Tool is a tool with its types erased. It is made by [Define], [Declare] or [Remote].
type Tool struct {
	Spec
	functions
	has    parts
	schema checker // of the arguments; zero for a tool that is not made by Define

	place   func(context.Context, Scope) (Place, error) // optional, as are the next two
	reads   func(Scope) []string
	cleanUp func(context.Context, Call) (int, error)
}

// Normalize strictly decodes the model's arguments (or those that a user edited), validates them and returns their
// canonical form (RFC 8785): the bytes that are shown, hashed, approved and executed.
func (t *Tool) Normalize(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.normalize(args)
}

// Revise returns the user's edited arguments with the changes that follow from the edit. Both arguments and the result
// are canonical.
func (t *Tool) Revise(before, edited json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.revise {
		return edited, nil
	}
	return t.revise(before, edited)
}

// Narrow returns what the model may still call in the run once it has made this call, or nil if that stays as it is.
func (t *Tool) Narrow(args json.RawMessage) (_ *Narrowing, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.narrow {
		return nil, nil
	}
	return t.narrow(args)
}

// Targets returns whom and what the call reaches, each once, or nil if it reaches neither. The policy, the allowlist
// and the approval go by it.
func (t *Tool) Targets(args json.RawMessage) (_ []Target, err error) {
	defer t.recoverPanic(&err, false)
	return t.targets(args)
}

// Bound returns the canonical form of the arguments that are not free text. The arguments come from Normalize, or are
// those alone.
func (t *Tool) Bound(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.bound(args)
}

// Bounded reports whether the tool says which of its arguments are free text, so that calls with the same others can be
// allowed together.
func (t *Tool) Bounded() bool { return t.has.bound }

// classWarnings are what a person is warned of before approving any call of a tool of the class.
var classWarnings = map[Class]string{
	ClassDestructive: "This deletes or overwrites something that cannot be restored.",
	ClassOpaque:      "What this changes cannot be told in advance.",
}

// Preview returns what a person reads before deciding, with nothing hidden. The first warning is that of the tool's
// class, unless the tool has a ruling for each call ([Preview.Warned]).
func (t *Tool) Preview(args json.RawMessage) (_ Preview, err error) {
	defer t.recoverPanic(&err, false)
	p, err := t.preview(args)
	p.reveal()
	if warning := classWarnings[t.Class]; warning != "" && !t.has.rule {
		p.Warnings = append([]string{warning}, p.Warnings...)
	}
	return p, err
}

// Summary returns one sentence about what was done.
func (t *Tool) Summary(args json.RawMessage) (said string) {
	defer func() {
		if recover() != nil {
			said = "Did " + t.Name + "."
		}
	}()
	return t.summary(args)
}

// Heading returns what a conversation may be called in which this was the one thing that was done, in one line with
// nothing hidden, or "".
func (t *Tool) Heading(args json.RawMessage) (said string) {
	defer func() {
		if recover() != nil {
			said = ""
		}
	}()
	if !t.has.heading {
		return ""
	}
	said, _ = visible.Line(t.heading(args))
	return said
}

// Placed reports whether the tool's calls act in a place.
func (t *Tool) Placed() bool { return t.place != nil }

// Place returns where a call of the scope would act now, or the zero Place if the tool's calls act in no particular
// place. Its error says why the place cannot be used.
func (t *Tool) Place(ctx context.Context, s Scope) (_ Place, err error) {
	defer t.recoverPanic(&err, false)
	if t.place == nil {
		return Place{}, nil
	}
	return t.place(ctx, s)
}

// Reads returns the paths of the documents by which the tool knows what the user has linked, or nil.
func (t *Tool) Reads(s Scope) []string {
	if t.reads == nil {
		return nil
	}
	return t.reads(s)
}

// CleanUp removes what the tool's calls have left of the run that the call names, and returns how many things these
// were. It is only called of a tool that [Spec.Leaves] something.
func (t *Tool) CleanUp(ctx context.Context, c Call) (removed int, err error) {
	defer t.recoverPanic(&err, false)
	c.Output = io.Discard
	return t.cleanUp(ctx, c)
}

// Waits reports whether the call is answered from outside, by a page or a person.
func (t *Tool) Waits() bool { return !t.has.execute }

// Prepares reports whether the tool has a Prepare function.
func (t *Tool) Prepares() bool { return t.has.prepare }

// Prepare creates the handle of the call.
func (t *Tool) Prepare(ctx context.Context, c Call) (_ string, err error) {
	defer t.recoverPanic(&err, false)
	c.Output = io.Discard
	return t.prepare(ctx, c)
}

// Execute carries the call out. Its arguments must come from Normalize.
func (t *Tool) Execute(ctx context.Context, c Call) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, t.SideEffect)
	if c.Output == nil {
		c.Output = io.Discard
	}
	result, err := t.execute(ctx, c)
	if t.SideEffect && errors.As(err, &unread{}) {
		return unreadableResult(err), nil
	}
	return result, err
}

// Limited reports whether calls may outlast the process that began them ([Def.Limit]).
func (t *Tool) Limited() bool { return t.has.limit }

// Limit returns how long the call may take in all, or zero where the tool's timeout bounds it.
func (t *Tool) Limit(args json.RawMessage) (d time.Duration) {
	defer func() {
		if recover() != nil {
			d = 0
		}
	}()
	if !t.has.limit {
		return 0
	}
	return t.limit(args)
}

// Interrupts reports whether the tool has an Interrupt function.
func (t *Tool) Interrupts() bool { return t.has.interrupt }

// Interrupt ends what the call does, or has it never begun. After an error, the caller should call it again later.
func (t *Tool) Interrupt(ctx context.Context, c Call) (err error) {
	defer t.recoverPanic(&err, false)
	c.Output, c.Over = io.Discard, true
	return t.interrupt(ctx, c)
}

// Reconcile settles a call that was started and has no recorded outcome. After an error, the caller should call it
// again later.
func (t *Tool) Reconcile(ctx context.Context, c Call) (_ Outcome, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.reconcile {
		return Outcome{Verdict: Unknown, Reason: "This tool cannot tell whether it was carried out."}, nil
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	return t.reconcile(ctx, c)
}
