package unit

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// HandOver releases the run's lease and asks for another call of the function to advance the run. If the request is
// lost, the sweep finds the run.
func (ex *Execution) HandOver(ctx context.Context) (*run.View, error) {
	ctx, cancel := Detached(ctx)
	defer cancel()
	err := ex.Transition(ctx, func(tx *Tx) error {
		if (tx.State.End == nil || run.NeedsDisposal(tx.State)) && tx.Run.Lease.Owner == ex.Owner {
			tx.Changed, tx.DueNow = true, true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ex.Publish(ctx)
	return ex.View(), nil
}

// Publish asks for the run to be advanced. A failure is only logged: the run is due soon, and the sweep finds it.
func (ex *Execution) Publish(ctx context.Context) {
	if err := ex.Queue.Resume(ctx, messageAbout(ctx, ex)); err != nil {
		ex.Log.WarnContext(ctx, "a resume could not be published; the sweep will find the run", "runId", ex.ID, "error",
			err)
	}
}

// PublishAfter asks for the run to be advanced after the duration d, unless stop is called before. The execution may be
// used in the meantime.
func (ex *Execution) PublishAfter(ctx context.Context, d time.Duration) (stop func() bool) {
	m, q, log := messageAbout(ctx, ex), ex.Queue, ex.Log
	return time.AfterFunc(d, func() {
		if err := q.Resume(ctx, m); err != nil {
			log.WarnContext(ctx, "a resume could not be published; the sweep will find the run", "runId", m.RunID,
				"error", err)
		}
	}).Stop
}

// messageAbout returns the message that asks for the run to be advanced.
func messageAbout(ctx context.Context, ex *Execution) queue.Message {
	return queue.Message{RunID: ex.ID, Agent: ex.Run.AgentName(), UID: ex.Run.UID, ThreadID: ex.Run.ThreadID,
		Terminal: ex.Run.Terminal, Trace: ex.Trace.Parent(ctx)}
}

// Claim makes sure, durably, that this process holds the run's lease for at least need, or for one lease period if that
// is shorter. A longer step renews the lease (see [Execution.Heartbeat]). Claim uses the later estimate of the time, as
// [Heartbeat.Lapsed] does. Otherwise a step with a lease that Lapsed rejects would be retried forever. It returns
// ErrHeld if another process holds the lease.
func (ex *Execution) Claim(ctx context.Context, need time.Duration) error {
	need = min(need, ex.LeasePeriod)
	longEnough := func(r run.Run) bool {
		return r.Lease.Owner == ex.Owner && r.Lease.Until.Sub(ex.clock.latest()) >= need
	}
	if longEnough(ex.Run) {
		return nil
	}
	return ex.Transition(ctx, func(tx *Tx) error {
		if tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return ErrHeld
		}
		tx.Changed = !longEnough(tx.Run) && (tx.State.End == nil || run.NeedsDisposal(tx.State))
		return nil
	})
}
