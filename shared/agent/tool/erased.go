package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Tool is a tool with its types erased. [Define], [Declare] and [Remote] make tools.
type Tool struct {
	Spec
	functions
	has    parts
	schema checker // of the arguments; zero for a tool that Define did not make

	place   func(context.Context, Scope) (Place, error) // optional, like the next two
	reads   func(Scope) []string
	cleanUp func(context.Context, Call) (int, error)
}

// Normalize strictly decodes arguments of the model, or those that a user edited, and validates them. It returns their
// canonical form (RFC 8785): the bytes that are shown, hashed, approved and executed.
func (t *Tool) Normalize(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.normalize(args)
}

// Revise returns the user's edited arguments with the changes that follow from the edit. The parameters and the result
// are canonical.
func (t *Tool) Revise(before, edited json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.revise {
		return edited, nil
	}
	return t.revise(before, edited)
}

// Restrict returns the restriction of tools that applies after this call, or nil if the call restricts nothing.
func (t *Tool) Restrict(args json.RawMessage) (_ *Restriction, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.narrow {
		return nil, nil
	}
	return t.narrow(args)
}

// Targets returns the people and things that the call reaches, each once, or nil. The policy, the allowlist and the
// approval use them.
func (t *Tool) Targets(args json.RawMessage) (_ []Target, err error) {
	defer t.recoverPanic(&err, false)
	return t.targets(args)
}

// Pinned returns the canonical form of the pinned arguments: those that are not free text. args come from Normalize, or
// are only the pinned arguments.
func (t *Tool) Pinned(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.pinned(args)
}

// Pins reports whether the tool distinguishes pinned arguments from free text. If it does, a user can allow all
// calls with the same pinned arguments together.
func (t *Tool) Pins() bool { return t.has.pinned }

// classWarnings maps a class to the warning on every approval of that class.
var classWarnings = map[Class]string{
	ClassDestructive: "This deletes or overwrites something that cannot be restored.",
	ClassOpaque:      "What this changes cannot be known in advance.",
}

// Preview returns what a person reads before deciding, with hidden characters made visible. The first warning is that
// of the tool's class, unless the tool has a policy for single calls ([Preview.Warned]).
func (t *Tool) Preview(args json.RawMessage) (_ Preview, err error) {
	defer t.recoverPanic(&err, false)
	p, err := t.preview(args)
	p.reveal()
	if warning := classWarnings[t.Class]; warning != "" && !t.has.rule {
		p.Warnings = append([]string{warning}, p.Warnings...)
	}
	return p, err
}

// Summary returns one sentence about the completed call.
func (t *Tool) Summary(args json.RawMessage) (said string) {
	defer func() {
		if recover() != nil {
			said = "Did " + t.Name + "."
		}
	}()
	return t.summary(args)
}

// Heading returns a title for a conversation whose only effect was this call, or "". The title is one line with hidden
// characters made visible.
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

// Placed reports whether the tool's calls act on an account or host.
func (t *Tool) Placed() bool { return t.place != nil }

// Place returns the account or host that a call of the scope would act on now. It returns the zero Place if the tool's
// calls act on none. Its error states why the account or host cannot be used.
func (t *Tool) Place(ctx context.Context, s Scope) (_ Place, err error) {
	defer t.recoverPanic(&err, false)
	if t.place == nil {
		return Place{}, nil
	}
	return t.place(ctx, s)
}

// Reads returns the paths of the documents that tell the tool what the user has linked, or nil.
func (t *Tool) Reads(s Scope) []string {
	if t.reads == nil {
		return nil
	}
	return t.reads(s)
}

// Dispose removes what the tool's calls created in the run that c names, and returns how many things it removed. It can
// be called only if the tool has [Spec.Leaves].
func (t *Tool) Dispose(ctx context.Context, c Call) (removed int, err error) {
	defer t.recoverPanic(&err, false)
	c.Output = io.Discard
	return t.cleanUp(ctx, c)
}

// Waits reports whether a page or a person answers the tool's calls.
func (t *Tool) Waits() bool { return !t.has.execute }

// Prepares reports whether the tool has a Prepare function.
func (t *Tool) Prepares() bool { return t.has.prepare }

// Prepare creates the handle of the call.
func (t *Tool) Prepare(ctx context.Context, c Call) (_ string, err error) {
	defer t.recoverPanic(&err, false)
	c.Output = io.Discard
	return t.prepare(ctx, c)
}

// Execute runs the call. c.Args must come from Normalize.
func (t *Tool) Execute(ctx context.Context, c Call) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, t.SideEffect)
	if c.Output == nil {
		c.Output = io.Discard
	}
	if c.Attach == nil {
		c.Attach = func([]byte) string { return "" }
	}
	result, err := t.execute(ctx, c)
	if t.SideEffect && errors.As(err, &unread{}) {
		return unreadableResult(err), nil
	}
	return result, err
}

// Limited reports whether calls can outlast the process that started them ([Def.Limit]).
func (t *Tool) Limited() bool { return t.has.limit }

// Limit returns the maximum duration of the call, or zero if the tool's timeout applies.
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

// Effects returns how many effects the call has, for a daily limit on effects ([Def.Effects]). It is at least 1.
func (t *Tool) Effects(args json.RawMessage) (n int) {
	defer func() {
		if recover() != nil {
			n = 1
		}
	}()
	if !t.has.effects {
		return 1
	}
	return t.effects(args)
}

// Interrupts reports whether the tool has an Interrupt function.
func (t *Tool) Interrupts() bool { return t.has.interrupt }

// Interrupt stops the call, or makes sure that it never starts. After an error, the caller should call it again later.
func (t *Tool) Interrupt(ctx context.Context, c Call) (err error) {
	defer t.recoverPanic(&err, false)
	c.Output, c.Over = io.Discard, true
	return t.interrupt(ctx, c)
}

// Reconcile finds the outcome of a call that was started and has no recorded outcome. After an error, the caller should
// call it again later.
func (t *Tool) Reconcile(ctx context.Context, c Call) (_ Outcome, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.reconcile {
		return Outcome{Verdict: Unknown, Reason: "This tool cannot find out whether it ran."}, nil
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	return t.reconcile(ctx, c, false)
}

// LookUp finds out whether the call took place although no start of it is recorded ([Def.LookUp]). After an error, the
// caller should call it again later.
func (t *Tool) LookUp(ctx context.Context, c Call) (_ Outcome, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.lookUp {
		return Outcome{Verdict: Unknown, Reason: "This tool cannot find out whether it ran."}, nil
	}
	c.Output = io.Discard
	return t.reconcile(ctx, c, true)
}
