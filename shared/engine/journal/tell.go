package journal

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/notice"
)

// tellAtMost is the longest pause before another attempt to publish a run's events.
const tellAtMost = time.Hour

// The run's own events are the outbox of its notifications. The run's document holds the delivered cursor, and the run
// is due while there are newer events. After a crash or an outage, the process that the sweep asks publishes them.

// Untold reports whether the run has events that must be published.
func Untold(ex *Execution) bool {
	return ex.Notices != nil && ex.Run.ID != "" && notice.Tells(ex.Run.ToldTo, ex.State, ex.Events)
}

// Tell publishes the run's events since the delivered cursor, and moves the cursor. A failure is only logged: the run
// stays due, and its events are published later.
func Tell(ctx context.Context, ex *Execution) {
	if !Untold(ex) {
		return
	}
	ctx, cancel := Detached(ctx)
	defer cancel()
	to := ex.Events[len(ex.Events)-1].Seq
	untoldOf := notice.After(ex.Run.ToldTo, ex.Run, ex.State, ex.Events, ex.Console)
	failed := ex.Notices.Publish(ctx, untoldOf...)
	if failed != nil && !errors.Is(failed, notice.ErrUnderWay) {
		ex.Log.WarnContext(ctx, "nobody could be told of a run, which is tried again later", "counter",
			"notices_failed", "runId", ex.ID, "error", failed)
	}
	pause := min(ex.Now().Sub(untoldOf[0].Time), tellAtMost) // doubles each time
	if failed != nil && pause <= publishGrace {
		return // it is due that soon anyway
	}
	err := ex.Transition(ctx, func(tx *Tx) error {
		st, _ := tx.Next()
		// leave the run free for the process that was asked to advance it
		moves := st != run.StepDone && st != run.StepWait
		tx.KeepLease = moves || tx.Run.Lease.Held(ex.Owner, tx.Now)
		switch {
		case failed == nil && tx.Run.ToldTo < to:
			tx.Run.ToldTo, tx.Changed = to, true
		case failed != nil && untold(tx) && !tx.KeepLease:
			tx.TellIn, tx.Changed = pause, true
		}
		return nil
	})
	if err != nil {
		ex.Log.WarnContext(ctx, "that others were told of a run could not be recorded, and they will be told again",
			"runId", ex.ID, "error", err)
	}
}
