package loop

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/outbox"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// advance makes steps until none is left for this process or ctx is cancelled.
func advance(ctx context.Context, ex *unit.Execution) (*run.View, error) {
	ctx, free := ex.Detach(ctx)
	defer free()
	ex.Foresee(ctx, foresight)
	defer ex.DropAhead()
	for {
		st, a := ex.Next()
		if st != run.StepDone && st != run.StepWait && st != run.StepElsewhere &&
			ex.Run.Lease.Held(ex.Owner, ex.Now()) {
			if st == run.StepSettle {
				effect.InterruptHeld(ctx, ex, a)
			}
			return nil, unit.ErrHeld
		}
		if ex.StepTime() > 0 {
			if mustHandOver(ctx, ex) {
				return ex.HandOver(ctx)
			}
			ctx = ex.Trace.Enter(ctx, ex.Run, ex.Asked)
		}
		switch st {
		case run.StepDone, run.StepWait:
			outbox.Remind(ctx, ex)
			outbox.Publish(ctx, ex)
			return ex.View(), nil
		case run.StepElsewhere:
			return leave(ctx, ex)
		case run.StepCleanUp:
			return ex.View(), cleanUp(ctx, ex)
		}
		switch err := makeStep(ctx, ex, st, a); {
		case errors.Is(err, errHandOver):
			return ex.HandOver(ctx)
		case errors.Is(err, effect.ErrLater):
			return ex.View(), nil
		case err != nil:
			return nil, err
		}
		ex.Progressed = true
	}
}

// makeStep makes one step of a run that continues. a is the step's action, if the step has one.
func makeStep(ctx context.Context, ex *unit.Execution, st run.Step, a *run.Action) error {
	switch {
	case exhausted(ex, st):
		return giveUpStep(ctx, ex, st, a)
	case st == run.StepEnd || st == run.StepExpire || st == run.StepSkip:
		return closeWhatIsOver(ctx, ex)
	case st == run.StepGiveUpTask:
		return giveUpTask(ctx, ex)
	case st == run.StepSettle:
		return effect.Reconcile(ctx, ex, a.ID)
	case st == run.StepLookUp:
		return effect.LookUp(ctx, ex, a.ID)
	case st == run.StepRequest:
		return effect.RequestApproval(ctx, ex, a.ID)
	case st == run.StepExecute:
		return effect.Execute(ctx, ex, a.ID)
	case st == run.StepCallModel:
		return callModel(ctx, ex)
	}
	return nil
}

// mustHandOver reports whether another process or a later call must make the run's next step.
func mustHandOver(ctx context.Context, ex *unit.Execution) bool {
	return ex.CallerGone() ||
		ex.Progressed && (ex.PastDeadline() || !unit.HasTimeFor(ctx, ex.StepTime()))
}

// leave leaves the run to a process that knows its agent. If no process has taken it up in time, the run is looked at
// again later, and ends at its deadline.
func leave(ctx context.Context, ex *unit.Execution) (*run.View, error) {
	if !ex.Counted {
		return ex.View(), nil
	}
	ex.Log.WarnContext(ctx, "this process does not know a run's agent, and no other process has advanced the run",
		"counter", "agent_unknown", "runId", ex.ID, "agent", ex.Run.AgentName())
	if run.NeedsDisposal(ex.State) {
		return ex.View(), putOff(ctx, ex, errNoEngine)
	}
	err := ex.Transition(ctx, func(tx *unit.Tx) error {
		st, _ := tx.Next()
		tx.Left = st == run.StepElsewhere && !tx.Run.Lease.Held(ex.Owner, tx.Now)
		tx.Changed = tx.Left
		return nil
	})
	return ex.View(), err
}

// errHandOver means that a step was cut short because the function's time ran out or the caller cancelled, not because
// the step timed out.
var errHandOver = errors.New("loop: out of time")
