package effect

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Reconcile finds out the outcome of an effect that an earlier execution started.
func Reconcile(ctx context.Context, ex *unit.Execution, id string) error {
	if err := ex.Claim(ctx, timeoutOf(ex, id)); err != nil {
		return err
	}
	a := ex.State.Action(id)
	if a.Status != run.ActionExecuting {
		return nil
	}
	t := ex.Toolbox.Tools[a.Tool]
	defer forgetPlace(ex, t)
	if t == nil || t.Waits() {
		return markUnknown(ctx, ex, id, "The tool is no longer available.", nil)
	}
	out, known := tool.Outcome{Verdict: tool.NotDone}, true
	switch {
	case a.Started.Same(ex.Unmade): // only this execution could make the call
		if ex.Ending() != nil {
			out.Verdict = tool.Never
		}
	case t.Limited():
		var found bool
		var err error
		if out, found, err = follow(ctx, ex, t, a, ex.Ending() != nil); !found {
			return err
		}
		known = out.Verdict != tool.Unknown
	case t.SideEffect:
		out, known = ask(ctx, ex, t, a)
	}
	return settled(ctx, ex, t, a, out, known)
}

// ask asks the tool for the outcome of the call.
func ask(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (tool.Outcome, bool) {
	call := toolCall(ex, a, a.Started.Handle)
	call.Over = ex.Ending() != nil
	printed := outputOf(ctx, ex, t, a.ID)
	defer printed.Close()
	return reconcile(ctx, ex, t, call, printed)
}

// settled records the outcome of the call, or makes the call again if it provably had no effect.
func settled(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action, out tool.Outcome,
	known bool) error {
	id := a.ID
	switch {
	case !known:
		return markUnknown(ctx, ex, id, out.Reason, nil)
	case out.Verdict != tool.NotDone:
		return recordFound(ctx, ex, id, out)
	case ex.Ending() != nil:
		return abandonRetry(ctx, ex, t, id,
			fault.New(fault.Policy, run.CodeCancelled, "This was ended before it was tried again."))
	case a.Started.Attempt >= run.MaxAttempts:
		return GiveUp(ctx, ex, a)
	}
	return retry(ctx, ex, t, a)
}

// retry makes a call again that provably had no effect. It fails if the permission was withdrawn since the first
// attempt.
func retry(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) error {
	if err := ex.ReadLinked(ctx, t, true); err != nil {
		return err
	}
	_, err := checkUnchanged(ctx, ex, a, t)
	if unread := (errUnread{}); errors.As(err, &unread) {
		return unread.error
	}
	if err != nil {
		return abandonRetry(ctx, ex, t, a.ID, err)
	}
	switch _, why := readAgain(ctx, ex, t, a); {
	case ctx.Err() != nil:
		return ctx.Err()
	case why != nil:
		return abandonRetry(ctx, ex, t, a.ID, why)
	}
	started := run.Started{Owner: ex.Owner, Attempt: a.Started.Attempt + 1, Handle: a.Started.Handle}
	ok, err := commitIntent(ctx, ex, t, a.ID, started)
	if barred := (errBarred{}); errors.As(err, &barred) {
		return abandonRetry(ctx, ex, t, a.ID, barred.error)
	}
	if err != nil || !ok {
		return err
	}
	return CallTool(ctx, ex, t, a.ID)
}
