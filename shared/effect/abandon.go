package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// recordFailure records that the call had no effect. With an earlier attempt that may still be under way, the failure
// says nothing about that one: its process may only have been stopped, its request may only be late.
func recordFailure(ctx context.Context, ex *journal.Execution, t *tool.Tool, id string, err error,
	underWay bool) error {
	if !t.SideEffect && journal.Left(ex) {
		return nil // the call may be what was cut short, and whoever goes on makes it again
	}
	claimed := t.Limited() && tool.IsEnded(err) // so the attempt that ended is the only one that began
	if underWay && !claimed {
		ctx, cancel := journal.Detached(ctx)
		defer cancel()
		return abandonRetry(ctx, ex, t, id, err)
	}
	if args := tool.AskedAnew(err); args != nil {
		return askAnew(ctx, ex, t, id, args, err)
	}
	return recordOutcome(ctx, ex, id, failedWithoutEffect(err))
}

// startedElsewhere is why a call that had not happened when it was checked, and is not tried again, is left to its
// user.
const startedElsewhere = "It had not been done when this was checked, but an earlier attempt may still be under way."

// abandonRetry records the outcome of a call that had not happened when it was checked and is not tried again. The
// process that started it may only have been stopped: so it is first made sure that the call is never begun, where its
// tool can do that, and otherwise the call is left to its user. As long as the tool cannot be asked, nothing is
// recorded.
func abandonRetry(ctx context.Context, ex *journal.Execution, t *tool.Tool, id string, why error) error {
	if !t.SideEffect {
		return recordOutcome(ctx, ex, id, failedWithoutEffect(why))
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
		return markUnknown(ctx, ex, id, startedElsewhere+" "+failedWithoutEffect(why).Error.Message, why)
	case tool.Unknown:
		return markUnknown(ctx, ex, id, out.Reason, nil)
	case tool.Never:
		return recordOutcome(ctx, ex, id, failedWithoutEffect(why))
	}
	return recordFound(ctx, ex, id, out) // it was begun after all
}

// forbids reports whether the tool makes sure, when it is asked about a call that must not go on, that a call which was
// not begun never is.
func forbids(t *tool.Tool) bool { return t.Limited() || t.Interrupts() }

// GiveUp records the outcome of a step of the call that was started too often: unknown for an effect, unless it can be
// made sure that it is never begun, and failed for anything else.
func GiveUp(ctx context.Context, ex *journal.Execution, a *run.Action) error {
	t := ex.Tools[a.Tool]
	switch {
	case a.Status != run.ActionExecuting || !a.SideEffect:
		return recordOutcome(ctx, ex, a.ID, failedWithoutEffect(run.ErrAttempts))
	case t == nil || !forbids(t) || ex.LostLeases(ex.Run) > run.MaxAttempts: // the last process died of this
		return markUnknown(ctx, ex, a.ID, run.ErrAttempts.Message, nil)
	}
	return abandonRetry(ctx, ex, t, a.ID, run.ErrAttempts)
}
