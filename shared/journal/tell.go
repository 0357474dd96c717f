package journal

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/notice"
	"github.com/countersign-run/countersign/shared/run"
)

// tellAtMost is the longest pause before others are told again who could not be told.
const tellAtMost = time.Hour

// The run's own events are the outbox of its notices: its document says of which of them others were told, and while
// there are more it is due. So what a crash or an outage keeps from being told is told by whoever the sweep asks.

// Untold reports whether there is anything about the run that others have not been told.
func Untold(ex *Execution) bool {
	return ex.Notices != nil && ex.Run.ID != "" && notice.Tells(ex.Run.ToldTo, ex.State, ex.Events)
}

// Tell tells others what has happened to the run since they were last told, and records that. A failure is only
// logged: the run stays due, and is told of later.
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
	pause := min(ex.Now().Sub(untoldOf[0].Time), tellAtMost) // twice as long each time
	if failed != nil && pause <= publishGrace {
		return // it is due so soon anyway
	}
	err := ex.Transition(ctx, func(tx *Tx) error {
		st, _ := tx.Next()
		moves := st != run.StepDone && st != run.StepWait // whoever was asked meanwhile to move it is to find it free
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
