package loop

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/run"
)

// Advance moves the run until it has ended, or waits, or the function's time is nearly up or ctx is cancelled, when it
// hands the run over through the queue. A cancelled ctx stops the model's call; an effect that is under way is finished
// and recorded. A run that another process moves is left to that process ([Held]). Advance acts on what the store
// says, never on the content of a message, so a message that is delivered twice or late finds nothing to do. A run that
// no process can move is postponed ([Postponed]).
func (l *Loop) Advance(ctx context.Context, runID string, emit journal.Sink) (*run.View, error) {
	return l.Resume(ctx, queue.Message{RunID: runID}, emit)
}

// Resume is [Loop.Advance] for the run of a message, whose hints save it a round trip.
func (l *Loop) Resume(ctx context.Context, m queue.Message, emit journal.Sink) (*run.View, error) {
	ex := l.NewExecution(m.RunID, emit)
	ex.Asked = m.Trace
	v, err := resume(ctx, ex, m)
	journal.EndTrace(ex, err)
	if journal.Stuck(err) && !journal.Postponed(err) {
		return nil, ex.Postpone(ctx, err)
	}
	return v, err
}

func resume(ctx context.Context, ex *journal.Execution, hints queue.Message) (*run.View, error) {
	for {
		if err := ex.LoadCounted(ctx, hints); err != nil {
			return nil, err
		}
		if ex.Run.ID == "" {
			return nil, fault.NotFound()
		}
		v, err := advance(ctx, ex)
		if err != nil || !sleptHold(ctx, ex) {
			return v, err
		}
	}
}

// sleptHold sleeps until the hold of a yes is over, without a lease: its user may take it back meanwhile. It reports
// false where none is held, or where this call has no time for it: the sweep finds the run then.
func sleptHold(ctx context.Context, ex *journal.Execution) bool {
	until := run.HeldUntil(ex.State, ex.Now())
	if until.IsZero() {
		return false
	}
	rest := until.Sub(ex.Now())
	return !journal.Left(ex) && journal.HasTimeFor(ctx, rest) && ex.Sleep(ctx, rest) == nil
}

// advance makes steps until none is left for this process, or until ctx is cancelled.
func advance(ctx context.Context, ex *journal.Execution) (*run.View, error) {
	ctx, free := journal.Stay(ctx, ex)
	defer free()
	for {
		st, a := ex.Next()
		if st != run.StepDone && st != run.StepWait && st != run.StepElsewhere &&
			ex.Run.Lease.Held(ex.Owner, ex.Now()) {
			if st == run.StepSettle {
				effect.InterruptHeld(ctx, ex, a)
			}
			return nil, journal.ErrHeld
		}
		if ex.StepTime() > 0 {
			if mustHandOver(ctx, ex) {
				return ex.HandOver(ctx)
			}
			ctx = journal.TraceRun(ctx, ex)
		}
		var err error
		switch {
		case st == run.StepDone || st == run.StepWait:
			journal.Remind(ctx, ex)
			journal.Tell(ctx, ex)
			return ex.View(), nil
		case st == run.StepElsewhere:
			return leave(ctx, ex)
		case exhausted(ex, st):
			err = giveUpStep(ctx, ex, st, a)
		case st == run.StepEnd || st == run.StepExpire || st == run.StepSkip:
			err = closeWhatIsOver(ctx, ex)
		case st == run.StepCleanUp:
			return ex.View(), cleanUp(ctx, ex)
		case st == run.StepGiveUpTask:
			err = giveUpTask(ctx, ex)
		case st == run.StepSettle:
			err = effect.Settle(ctx, ex, a.ID)
		case st == run.StepRequest:
			err = effect.RequestApproval(ctx, ex, a.ID)
		case st == run.StepExecute:
			err = effect.Execute(ctx, ex, a.ID)
		case st == run.StepCallModel:
			err = callModel(ctx, ex)
		}
		switch {
		case errors.Is(err, errHandOver):
			return ex.HandOver(ctx)
		case errors.Is(err, effect.ErrLater):
			return ex.View(), nil
		}
		if err != nil {
			return nil, err
		}
		ex.Progressed = true
	}
}

// mustHandOver reports whether another process, or a later call, is to make the run's next step.
func mustHandOver(ctx context.Context, ex *journal.Execution) bool {
	return journal.Left(ex) ||
		ex.Progressed && (journal.Late(ex) || !journal.HasTimeFor(ctx, ex.StepTime()))
}

// leave leaves the run to a process that knows its agent. One that nobody has taken up in time is looked at again
// later, and at its deadline, where it is ended.
func leave(ctx context.Context, ex *journal.Execution) (*run.View, error) {
	if !ex.Counted {
		return ex.View(), nil
	}
	ex.Log.WarnContext(ctx, "a run's agent is not known here, and nobody else has moved the run in time", "counter",
		"agent_unknown", "runId", ex.ID, "agent", ex.Run.AgentName())
	if run.Unclean(ex.State) {
		return ex.View(), putOff(ctx, ex, errNoEngine)
	}
	err := ex.Transition(ctx, func(tx *journal.Tx) error {
		st, _ := tx.Next()
		tx.Left = st == run.StepElsewhere && !tx.Run.Lease.Held(ex.Owner, tx.Now)
		tx.Changed = tx.Left
		return nil
	})
	return ex.View(), err
}

// errHandOver means that a step was cut short because the function's time ran out, not the step's own, or because
// whoever moves the run has left.
var errHandOver = errors.New("loop: out of time")
