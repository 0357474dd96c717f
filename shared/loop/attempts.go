package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
)

// maxAttempts is how often a step is started. A process that dies in one (it panics, it needs more memory than there
// is, the platform ends it) leaves a lease that lapses; the process that takes the run up counts that in the lease,
// durably, before it tries. A step that makes any progress starts a new count.
const maxAttempts = 5

// codeAttempts is the code of a step that was given up.
const codeAttempts fault.Code = "too_many_attempts"

var errAttempts = fault.New(fault.Tool, codeAttempts,
	"The server failed %d times while doing this, so it was given up.", maxAttempts)

// lostLeases returns how many owners in a row, before this execution, have let the run's lease lapse.
func (ex *execution) lostLeases(r run.Run) int {
	if r.Lease.Owner != "" && r.Lease.Owner != ex.owner {
		return r.Lease.Lapsed + 1
	}
	return r.Lease.Lapsed
}

// retryDelay returns by how much the lease of a later attempt is longer, so that the next attempt comes later: 0, 2, 4,
// 8 and 16 minutes.
func retryDelay(lost int) time.Duration {
	if lost == 0 {
		return 0
	}
	return time.Minute << min(lost, maxAttempts)
}

// exhausted reports whether the run's next step was started as often as it may be. Ending a run does not count: it is
// one commit.
func (ex *execution) exhausted(st step) bool {
	return ex.lostLeases(ex.run) >= maxAttempts && (st == stepExecute || st == stepSettle || st == stepCallModel)
}

// giveUpStep gives up a step that was started too often. The run continues with what else is left, and then ends.
func (ex *execution) giveUpStep(ctx context.Context, st step, a *run.Action) error {
	if err := ex.claim(ctx, ex.limits().ToolTimeout); err != nil {
		return err
	}
	ex.Log.ErrorContext(ctx, "a step was started too often and is given up", "counter", "step_given_up", "runId", ex.id,
		"attempts", maxAttempts)
	if st == stepCallModel {
		return ex.transition(ctx, func(tx *tx) error {
			if now, _ := ex.next(tx.state, tx.run, tx.now); now != stepCallModel ||
				tx.run.Lease.Held(ex.owner, tx.now) {
				return nil
			}
			return tx.endRun(failedEnd(errAttempts))
		})
	}
	return ex.giveUpCall(ctx, a)
}

// giveUpCall records the outcome of a call that was started too often: unknown for an effect, failed for anything else.
func (ex *execution) giveUpCall(ctx context.Context, a *run.Action) error {
	if a.Status == run.ActionExecuting && a.SideEffect {
		return ex.markUnknown(ctx, a.ID, errAttempts.Message, nil)
	}
	return ex.recordOutcome(ctx, a.ID, failedWithoutEffect(errAttempts))
}
