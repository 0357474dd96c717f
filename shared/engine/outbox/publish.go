// Package outbox publishes the notifications of runs and reminds users of waiting approvals. The run's own events are
// the outbox: the run's document holds the delivered cursor, and the run is due while there are newer events. After a
// crash or an outage, the process that the sweep asks publishes them.
package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// maxPause is the longest pause before another attempt to publish a run's events.
const maxPause = time.Hour

// Publish publishes the run's events since the delivered cursor, and moves the cursor. A failure is only logged: the
// run stays due, and its events are published later.
func Publish(ctx context.Context, ex *unit.Execution) {
	if !ex.HasUnpublished() {
		return
	}
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	to := ex.Events[len(ex.Events)-1].Seq
	notices := event.After(ex.Run.Delivered, ex.Run, ex.State, ex.Events, ex.Console)
	failed := ex.Publisher.Publish(ctx, notices...)
	if failed != nil && !errors.Is(failed, event.ErrUnderWay) {
		ex.Log.WarnContext(ctx, "the notifications of a run could not be published and are retried later", "counter",
			"notices_failed", "runId", ex.ID, "error", failed)
	}
	pause := min(ex.Now().Sub(notices[0].Time), maxPause) // doubles each time
	if failed != nil && pause <= unit.PublishGrace {
		return // the run is due that soon anyway
	}
	err := ex.Transition(ctx, func(tx *unit.Tx) error {
		st, _ := tx.Next()
		// leave the run free for the process that was asked to advance it
		moves := st != run.StepDone && st != run.StepWait
		tx.KeepLease = moves || tx.Run.Lease.Held(ex.Owner, tx.Now)
		switch {
		case failed == nil && tx.Run.Delivered < to:
			tx.Run.Delivered, tx.Changed = to, true
		case failed != nil && tx.HasUnpublished() && !tx.KeepLease:
			tx.RetryIn, tx.Changed = pause, true
		}
		return nil
	})
	if err != nil {
		ex.Log.WarnContext(ctx, "the delivered cursor of a run could not be moved, so its notifications are sent again",
			"runId", ex.ID, "error", err)
	}
}
