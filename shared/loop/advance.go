package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
)

// Advance moves the run until it has ended, or waits, or the function's time is nearly up, when it hands the run over
// through the queue. A run that another process moves is left to that process ([Held]). Advance acts on what the store
// says, never on the content of a message, so a message that is delivered twice or late finds nothing to do. A run that
// no process can move is postponed ([Postponed]).
func (l *Loop) Advance(ctx context.Context, runID string, emit Sink) (*run.View, error) {
	ex := l.newExecution(runID, emit)
	v, err := ex.resume(ctx)
	if stuck(err) && !Postponed(err) {
		return nil, ex.postpone(ctx, err)
	}
	return v, err
}

func (ex *execution) resume(ctx context.Context) (*run.View, error) {
	if err := ex.loadCounted(ctx); err != nil {
		return nil, err
	}
	if ex.run.ID == "" {
		return nil, fault.NotFound()
	}
	return ex.advance(ctx)
}

// step is what a run needs next.
type step int

const (
	stepDone      step = iota // it has ended
	stepWait                  // a user or a client must answer
	stepEnd                   // it must be ended, and nothing else is carried out
	stepSettle                // an effect was started and has no outcome
	stepExpire                // an approval or an answer came too late, and others are left
	stepExecute               // a call may be carried out
	stepCallModel             // the model must be called
	stepElsewhere             // it must be moved by a process that knows its agent, or by the function that serves it
)

// next returns what the run needs next of this process, and the action concerned, if any. It is a pure function of the
// run, the time and the agents. What moves a run needs its agent; expiring a call and ending the run do not.
func (l *Loop) next(s *run.State, r run.Run, now time.Time) (step, *run.Action) {
	st, a := l.needs(s, r, now)
	moves := st == stepSettle || st == stepExecute || st == stepCallModel
	switch {
	case !moves || l.Agents.Get(r.Agent) != nil && l.Serves(r.Agent):
		return st, a
	case st == stepSettle && !now.Before(r.Deadline): // the run is about to be ended, and whatever its tool says counts
		return st, a
	case len(expired(s, now)) > 0:
		return stepExpire, nil
	}
	return stepElsewhere, nil
}

// needs returns what the run needs next, whoever does it.
func (l *Loop) needs(s *run.State, r run.Run, now time.Time) (step, *run.Action) {
	if s.End != nil {
		return stepDone, nil
	}
	for _, a := range s.Actions {
		if a.Status == run.ActionExecuting {
			return stepSettle, a
		}
	}
	if l.ending(s, r, now) != nil {
		return stepEnd, nil
	}
	for _, a := range s.Current() {
		if a.Runnable() {
			return stepExecute, a
		}
	}
	if len(expired(s, now)) > 0 {
		return stepExpire, nil
	}
	if len(s.Open()) > 0 {
		return stepWait, nil
	}
	return stepCallModel, nil
}

// stepTime returns how long the run's next step may take, or zero when there is none for this process.
func (l *Loop) stepTime(s *run.State, r run.Run, now time.Time) time.Duration {
	switch st, a := l.next(s, r, now); st {
	case stepDone, stepWait, stepElsewhere:
		return 0
	case stepCallModel:
		return l.Agents.Limits(r.Agent).ModelTimeout
	case stepSettle, stepExecute:
		return l.Agents.Limits(r.Agent).OfTool(l.Tools[a.Tool])
	default:
		return l.Agents.Limits(r.Agent).ToolTimeout
	}
}

// advance makes steps until none is left for this process.
func (ex *execution) advance(ctx context.Context) (*run.View, error) {
	for {
		st, a := ex.next(ex.state, ex.run, ex.now())
		if st != stepDone && st != stepWait && st != stepElsewhere && ex.run.Lease.Held(ex.owner, ex.now()) {
			return nil, errHeld
		}
		if need := ex.stepTime(ex.state, ex.run, ex.now()); need > 0 && ex.progressed && !hasTimeFor(ctx, need) {
			return ex.handOver(ctx)
		}
		var err error
		switch {
		case st == stepDone || st == stepWait:
			return ex.view(), nil
		case st == stepElsewhere:
			return ex.leave(ctx)
		case ex.exhausted(st):
			err = ex.giveUpStep(ctx, st, a)
		case st == stepEnd || st == stepExpire:
			err = ex.endOrExpire(ctx)
		case st == stepSettle:
			err = ex.settle(ctx, a.ID)
		case st == stepExecute:
			err = ex.executeCall(ctx, a.ID)
		case st == stepCallModel:
			err = ex.callModel(ctx)
		}
		if errors.Is(err, errHandOver) {
			return ex.handOver(ctx)
		}
		if err != nil {
			return nil, err
		}
		ex.progressed = true
	}
}

// elsewhereGrace is how long a run that nobody moved in time is left to whoever knows its agent.
const elsewhereGrace = 10 * time.Minute

// leave leaves the run to a process that knows its agent. One that nobody has taken up in time is looked at again
// later, and at its deadline, where it is ended.
func (ex *execution) leave(ctx context.Context) (*run.View, error) {
	if !ex.counted {
		return ex.view(), nil
	}
	ex.Log.WarnContext(ctx, "a run's agent is not known here, and nobody else has moved the run in time", "counter",
		"agent_unknown", "runId", ex.id, "agent", ex.run.AgentName())
	err := ex.transition(ctx, func(tx *tx) error {
		st, _ := ex.next(tx.state, tx.run, tx.now)
		tx.left = st == stepElsewhere && !tx.run.Lease.Held(ex.owner, tx.now)
		tx.changed = tx.left
		return nil
	})
	return ex.view(), err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// errHandOver means that a step was cut short because the function's time ran out, not the step's own.
var errHandOver = errors.New("loop: out of time")

// hasTimeFor reports whether a step that may take need fits into what is left of the function's time.
func hasTimeFor(ctx context.Context, need time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) >= need+reserve
}

// withStepTimeout returns a context for a step: it ends after limit, or earlier so that the function's time suffices
// for a last commit.
func withStepTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Second, min(limit, time.Until(end)-reserve))
	}
	return context.WithTimeout(ctx, limit)
}

// detached returns a context with time of its own for a commit that must not be lost, even when the caller's time has
// run out.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

// handOver releases the run's lease and asks for the run to be moved by another call of the function. If the request is
// lost, the sweep finds the run.
func (ex *execution) handOver(ctx context.Context) (*run.View, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	err := ex.transition(ctx, func(tx *tx) error {
		if tx.state.End == nil && tx.run.Lease.Owner == ex.owner {
			tx.changed, tx.dueNow = true, true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ex.publish(ctx)
	return ex.view(), nil
}

// publish asks for the run to be moved. A failure is only logged: the run is due soon, and the sweep finds it.
func (ex *execution) publish(ctx context.Context) {
	if err := ex.Queue.Resume(ctx, ex.id, ex.run.AgentName()); err != nil {
		ex.Log.WarnContext(ctx, "a resume could not be published; the sweep will find the run", "runId", ex.id, "error",
			err)
	}
}

// claim makes sure, durably, that this process holds the run for at least need.
func (ex *execution) claim(ctx context.Context, need time.Duration) error {
	mine := func(r run.Run) bool {
		return r.Lease.Owner == ex.owner && r.Lease.Until.Sub(ex.now()) >= need
	}
	if mine(ex.run) {
		return nil
	}
	return ex.transition(ctx, func(tx *tx) error {
		if tx.run.Lease.Held(ex.owner, tx.now) {
			return errHeld
		}
		tx.changed = !mine(tx.run) && tx.state.End == nil
		return nil
	})
}
