package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// Cancel stops the run at the next safe point: at once when no process moves it, otherwise after the step that is under
// way. A call of the model, and of a tool that is interruptible, is ended at once by the process that makes it, which
// watches the run. A side effect is never stopped in its middle, unless its tool can be interrupted
// (tool.Def.Interrupt): what such a call does is also ended by the process that the message of this cancel wakes. A
// run that has ended stays as it is.
func (l *Loop) Cancel(ctx context.Context, uid, runID string) (*run.View, error) {
	ex := l.NewExecution(runID, nil)
	soon, cancel := journal.WithAnswerTimeout(ctx)
	defer cancel()
	if err := ex.LoadOwned(soon, uid); err != nil {
		return nil, err
	}
	asked := false
	err := ex.Transition(soon, func(tx *journal.Tx) error {
		if tx.State.End != nil || tx.State.Cancelled {
			return nil
		}
		tx.KeepLease = true
		if idle(tx) { // what follows from the time comes first
			if err := applyClock(tx); err != nil || tx.State.End != nil {
				return err
			}
		}
		asked = true
		if err := tx.AddEvent(run.Event{Type: run.CancelRequested}); err != nil {
			return err
		}
		if idle(tx) {
			return endRun(tx, tx.Ending())
		}
		return nil
	})
	if err == nil && (asked && ex.State.End == nil || run.Unclean(ex.State) || journal.Untold(ex)) {
		ex.Publish(ctx) // the process that moves it may die before it sees this, and what it has left is removed
	}
	if err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}
