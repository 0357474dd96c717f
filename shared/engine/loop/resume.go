package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Advance advances the run until it has ended or waits. If the function's time is nearly up or ctx is cancelled, it
// hands the run over through the queue instead. A cancelled ctx stops a model call; an effect in progress is finished
// and recorded. Advance acts on the stored state, never on the content of a message, so a message that arrives twice or
// late has no effect. It returns unit.ErrHeld if another process advances the run ([unit.Held]), and postpones a
// run that no process can advance ([unit.Postponed]).
func (l *Loop) Advance(ctx context.Context, runID string, emit unit.Sink) (*run.View, error) {
	return l.Resume(ctx, queue.Message{RunID: runID}, emit)
}

// Resume is [Loop.Advance] for the run of a message. The message's hints save a round trip.
func (l *Loop) Resume(ctx context.Context, m queue.Message, emit unit.Sink) (*run.View, error) {
	ex := l.NewExecution(m.RunID, emit)
	ex.Asked = m.Trace
	v, err := resume(ctx, ex, m)
	if err := l.reopenEarlier(ctx, ex); err != nil {
		ex.Log.WarnContext(ctx, "a card could not be reopened after an undo", "counter", "reopen_failed",
			"runId", ex.ID, "error", err)
	}
	ex.CountDropped(ctx)
	ex.EndTrace(err)
	if unit.Stuck(err) && !unit.Postponed(err) {
		return nil, ex.Postpone(ctx, err)
	}
	return v, err
}

func resume(ctx context.Context, ex *unit.Execution, hints queue.Message) (*run.View, error) {
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

// sleptHold sleeps until the undo window of an approval closes, without a lease, so that the user can revoke the
// approval. It returns false if no window is open, or if this call has no time to wait; the sweep then finds the run.
func sleptHold(ctx context.Context, ex *unit.Execution) bool {
	until := run.HeldUntil(ex.State, ex.Now())
	if until.IsZero() {
		return false
	}
	rest := until.Sub(ex.Now())
	return !ex.CallerGone() && unit.HasTimeFor(ctx, rest) && ex.Sleep(ctx, rest) == nil
}
