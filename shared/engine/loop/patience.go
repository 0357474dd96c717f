package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// The waits for a model without capacity double from firstPatience to longestPatience. The service can ask for a longer
// wait.
const (
	firstPatience   = 30 * time.Second
	longestPatience = 8 * time.Minute
)

// nextAttempt returns when a run asks a model again whose quota is used up, or whose service has asked for a pause. ok
// is false if the run fails instead: the error is another, a part of the answer was shown, a page waits for the answer,
// or the run's time for such waits or its deadline would pass. Many runs can fail at the same time, so the waits are
// spread, unless the shared quota has given the run a turn.
func nextAttempt(ex *unit.Execution, failure error) (at time.Time, ok bool) {
	asked := fault.As(failure)
	pauses := isBusy(failure) && (asked.Code == model.CodeQuota || asked.RetryAfter > 0)
	if !pauses || errors.Is(failure, errShown) || ex.Agents.Get(ex.Run.Agent).Page {
		return at, false
	}
	now, waits := ex.Now(), ex.State.Waits
	wait := min(firstPatience<<min(waits.Count, 8), longestPatience)
	wait = max(asked.RetryAfter, wait/2) + ex.Jitter(wait/2)
	if errors.Is(failure, quota.ErrUsedUp) {
		wait = asked.RetryAfter // until the run's turn
	}
	at = now.Add(wait)
	since := now
	if waits.Count > 0 {
		since = waits.Since
	}
	return at, at.Sub(since) <= ex.ModelPatience && at.Before(ex.Run.Deadline)
}

// postponeModel records that the model is asked again at that time. It gives up the run: the sweep finds it when it is
// due.
func postponeModel(ctx context.Context, ex *unit.Execution, at time.Time, failure error) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	ex.Log.WarnContext(ctx, "the model has no capacity, and is asked again", "counter", "model_postponed", "runId",
		ex.ID, "error", failure)
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		tx.UnrecordedCalls = 1
		return tx.AddEvent(run.Event{Type: run.ModelPostponed, Postponed: &run.Postponed{Until: at}})
	})
}
