package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
)

// maxAttempts is how often a step is begun. A process that dies at one (it panics, it needs more memory than there is, the
// platform ends it) leaves a lease that lapses, and whoever takes the run up counts that in the lease, durably, before trying
// itself. A step that has come any further begins a new count.
const maxAttempts = 5

// codeAttempts is the code of a step that was given up.
const codeAttempts fault.Code = "too_many_attempts"

var errAttempts = fault.New(fault.Tool, codeAttempts, "This was tried %d times, and each time the server failed before it was over, so it was given up.", maxAttempts)

// lost is how many owners in a row have let the run's lease lapse, up to this mover.
func (m *mover) lost(r agent.Run) int {
	if r.Lease.Owner != "" && r.Lease.Owner != m.owner {
		return r.Lease.Lost + 1
	}
	return r.Lease.Lost
}

// setback is how much longer the lease of a later attempt is, so that the next comes later: 0, 2, 4, 8 and 16 minutes.
func setback(lost int) time.Duration {
	if lost == 0 {
		return 0
	}
	return time.Minute << min(lost, maxAttempts)
}

// exhausted reports whether the run's next step was begun as often as it may be. An end is no such step: it is one commit.
func (m *mover) exhausted(st step) bool {
	return m.lost(m.run) >= maxAttempts && (st == stepAct || st == stepSettle || st == stepPlan)
}

// giveUpOn ends the step that was begun too often; the run goes on to what else is left of it, and then ends.
func (m *mover) giveUpOn(ctx context.Context, st step, a *agent.Action) error {
	if err := m.claim(ctx, m.Profile.ToolTimeout); err != nil {
		return err
	}
	m.Log.ErrorContext(ctx, "a step was begun too often and is given up", "counter", "step_given_up", "runId", m.id, "attempts", maxAttempts)
	if st == stepPlan {
		return m.transition(ctx, func(d *draft) error {
			if now, _ := m.next(d.state, d.run, d.now); now != stepPlan || d.run.Lease.Held(m.owner, d.now) {
				return nil
			}
			return d.end(failure(errAttempts))
		})
	}
	return m.abandon(ctx, a)
}

// abandon leaves a call that was begun too often: nobody can tell what became of an effect, and of all else that it failed.
func (m *mover) abandon(ctx context.Context, a *agent.Action) error {
	if a.Status == agent.ActionExecuting && a.SideEffect {
		return m.park(ctx, a.ID, errAttempts.Message)
	}
	return m.outcome(ctx, a.ID, refusal(errAttempts))
}
