package effect

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// Settle finds out what became of an effect that an earlier execution started.
func Settle(ctx context.Context, ex *journal.Execution, id string) error {
	if err := ex.Claim(ctx, timeoutOf(ex, id)); err != nil {
		return err
	}
	a := ex.State.Action(id)
	if a.Status != run.ActionExecuting {
		return nil
	}
	t := ex.Tools[a.Tool]
	if t == nil || t.Waits() {
		return markUnknown(ctx, ex, id, "The tool is no longer available.", nil)
	}
	out, known := tool.Outcome{Verdict: tool.NotDone}, true
	if t.SideEffect {
		out, known = reconcile(ctx, ex, t, toolCall(ex, a, a.Started.Handle))
	}
	switch {
	case !known:
		return markUnknown(ctx, ex, id, out.Reason, nil)
	case out.Verdict == tool.Done:
		return recordOutcome(ctx, ex, id, Succeeded(out.Result))
	case ex.Ending() != nil:
		return abandonRetry(ctx, ex, t, id,
			fault.New(fault.Policy, run.CodeCancelled, "The run ended before it was tried again."))
	case a.Started.Attempt >= run.MaxAttempts:
		return GiveUp(ctx, ex, a)
	}
	return retry(ctx, ex, t, a)
}

// retry takes over a call that provably had no effect. A permission that was withdrawn since the first attempt counts
// as withdrawn.
func retry(ctx context.Context, ex *journal.Execution, t *tool.Tool, a *run.Action) error {
	if err := journal.ReadLinked(ctx, ex, t, true); err != nil {
		return err
	}
	if err := checkUnchanged(ctx, ex, a, t); err != nil {
		return abandonRetry(ctx, ex, t, a.ID, err)
	}
	started := run.Started{Owner: ex.Owner, Attempt: a.Started.Attempt + 1, Handle: a.Started.Handle}
	ok, err := commitIntent(ctx, ex, t, a.ID, started)
	if moved := (errMoved{}); errors.As(err, &moved) {
		return abandonRetry(ctx, ex, t, a.ID, moved.error)
	}
	if err != nil || !ok {
		return err
	}
	return CallTool(ctx, ex, t, a.ID)
}
