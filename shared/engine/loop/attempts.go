package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// exhausted reports whether the run's next step has been started too often. Ending a run does not count, because it is
// one commit.
func exhausted(ex *unit.Execution, st run.Step) bool {
	return ex.LostLeases(ex.Run) >= run.MaxAttempts &&
		(st == run.StepRequest || st == run.StepExecute || st == run.StepSettle || st == run.StepCallModel)
}

// giveUpStep gives up a step that was started too often. The run continues with its other steps, and then ends.
func giveUpStep(ctx context.Context, ex *unit.Execution, st run.Step, a *run.Action) error {
	if err := ex.Claim(ctx, ex.Limits().ToolTimeout); err != nil {
		return err
	}
	ex.Log.ErrorContext(ctx, "a step was given up after too many attempts", "counter", "step_given_up", "runId", ex.ID,
		"attempts", run.MaxAttempts)
	if st == run.StepCallModel {
		return ex.Transition(ctx, func(tx *unit.Tx) error {
			if now, _ := tx.Next(); now != run.StepCallModel ||
				tx.Run.Lease.Held(ex.Owner, tx.Now) {
				return nil
			}
			if s := tx.State.Plan; s != nil && len(s.GiveUp("")) > 0 {
				return giveUp(tx, run.ErrAttempts.Message)
			}
			return endRun(tx, run.FailedEnd(run.ErrAttempts))
		})
	}
	return effect.GiveUp(ctx, ex, a)
}
