package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// recordFailure records that the call had no effect. If underWay, an earlier attempt may still be in progress: its
// process may have been paused, or its request may be late. The failure says nothing about that attempt.
func recordFailure(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string, err error,
	underWay bool) error {
	if !t.SideEffect && ex.CallerGone() {
		return nil // the caller's cancel may have cut the call short; the next process makes it again
	}
	claimed := t.Limited() && tool.IsEnded(err) // the attempt that ended is then the only one that began
	if underWay && !claimed {
		ctx, cancel := unit.Detached(ctx)
		defer cancel()
		return abandonRetry(ctx, ex, t, id, err)
	}
	if args := tool.AskedAnew(err); args != nil {
		seen := lookFor(ctx, ex, t, id, args)
		seen.Warnings = append(tool.ChangedSince(err), seen.Warnings...)
		return askAnew(ctx, ex, t, id, args, seen, err)
	}
	return recordOutcome(ctx, ex, id, failed(err))
}

// startedElsewhere is the reason shown to the user for a review of a call that had not happened when it was checked,
// and that is not retried.
const startedElsewhere = "It had not been done when this was checked, but an earlier attempt may still be under way."

// abandonRetry records the outcome of a call that had not happened when it was checked and is not retried. The process
// that started it may only have been paused. If the tool can, it first prevents the call from ever beginning; otherwise
// the user must review the call. While the tool cannot be asked, nothing is recorded.
func abandonRetry(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string, why error) error {
	if !t.SideEffect {
		return recordOutcome(ctx, ex, id, failed(why))
	}
	out := tool.Outcome{Verdict: tool.NotDone}
	if forbids(t) {
		var found bool
		var err error
		if out, found, err = follow(ctx, ex, t, ex.State.Action(id), true); !found {
			return err
		}
	}
	switch out.Verdict {
	case tool.NotDone:
		return markUnknown(ctx, ex, id, startedElsewhere+" "+failed(why).Error.Message, why)
	case tool.Unknown:
		return markUnknown(ctx, ex, id, out.Reason, nil)
	case tool.Never:
		return recordOutcome(ctx, ex, id, failed(why))
	}
	return recordFound(ctx, ex, id, out) // the call began after all
}

// forbids reports whether the tool can prevent a call from ever beginning.
func forbids(t *tool.Tool) bool { return t.Limited() || t.Interrupts() }

// GiveUp records the outcome of a call that was started too often. An effect gets an unknown outcome, unless its tool
// can prevent it from ever beginning. Any other call has failed.
func GiveUp(ctx context.Context, ex *unit.Execution, a *run.Action) error {
	t := ex.Toolbox.Tools[a.Tool]
	switch {
	case a.Status != run.ActionExecuting || !a.SideEffect:
		return recordOutcome(ctx, ex, a.ID, failed(run.ErrAttempts))
	// the last process died while it gave the call up
	case t == nil || !forbids(t) || ex.LostLeases(ex.Run) > run.MaxAttempts:
		return markUnknown(ctx, ex, a.ID, run.ErrAttempts.Message, nil)
	}
	return abandonRetry(ctx, ex, t, a.ID, run.ErrAttempts)
}
