package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Cancel stops the run at the next safe point: at once if no process advances it, otherwise after the step in progress.
// The process that makes a model call, or a call of an interruptible tool, watches the run and ends the call at once. A
// side effect is never stopped halfway, unless its tool can be interrupted (tool.Def.Interrupt). The process that
// receives this cancel's message interrupts such a call too. A run that has ended does not change.
func (l *Loop) Cancel(ctx context.Context, uid, runID string) (*run.View, error) {
	ex := l.NewExecution(runID, nil)
	soon, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	if err := ex.LoadOwned(soon, uid); err != nil {
		return nil, err
	}
	asked := false
	err := ex.Transition(soon, func(tx *unit.Tx) error {
		if tx.State.End != nil || tx.State.Cancelled {
			return nil
		}
		tx.KeepLease = true
		if idle(tx) { // expiries and deadlines come first
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
	if err == nil && (asked && ex.State.End == nil || run.NeedsDisposal(ex.State) || ex.HasUnpublished()) {
		// the process that advances the run may die before it sees the cancel; removal of created things also needs a
		// process
		ex.Publish(ctx)
	}
	if err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}
