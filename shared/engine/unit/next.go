package unit

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
)

// LostLeases returns the number of consecutive owners before this execution that let the run's lease lapse.
func (ex *Execution) LostLeases(r run.Run) int {
	if r.Lease.Owner != "" && r.Lease.Owner != ex.Owner {
		return r.Lease.Lapsed + 1
	}
	return r.Lease.Lapsed
}

// retryDelay returns how much longer the lease of a later attempt is, so that further attempts come later: 0, 2, 4, 8,
// 16 and at most 32 minutes.
func retryDelay(lost int) time.Duration {
	if lost == 0 {
		return 0
	}
	return time.Minute << min(lost, run.MaxAttempts)
}

// leaseUntil returns the end of a lease that begins now and covers a step of duration need, or the first period of it.
func (l *Env) leaseUntil(now time.Time, need time.Duration, lost int) time.Time {
	return now.Add(min(need, l.LeasePeriod) + l.LeaseMargin + retryDelay(lost))
}

// terms returns the settings of the run's agent, as far as this process knows them.
func (l *Env) terms(r run.Run) run.Terms {
	t := run.Terms{Tools: l.Tools}
	if agent := l.Agents.Get(r.Agent); agent != nil {
		t.Known, t.Here, t.ModelCalls = true, l.Serves(r.Agent), agent.Limits.ModelCalls
		t.Budget = agent.Limits.Budget
		t.Sequential, t.Strict = agent.Order == registry.Sequential, agent.Order == registry.Strict
		t.RejectContinues = agent.OnReject == registry.RejectContinues
		t.RejectFails = agent.OnReject == registry.RejectFails
	}
	return t
}

// Terms returns the settings of the agent of the run, as far as this process knows them.
func (ex *Execution) Terms() run.Terms { return ex.terms(ex.Run) }

// Next returns what the run needs next from this process, and the action concerned, if any.
func (ex *Execution) Next() (run.Step, *run.Action) {
	return ex.terms(ex.Run).Next(ex.State, ex.Run, ex.Now())
}

// Next returns what the run needs after this transition.
func (tx *Tx) Next() (run.Step, *run.Action) {
	return tx.Ex.terms(tx.Run).Next(tx.State, tx.Run, tx.Now)
}

// Ending returns how the run must end, or nil if it may continue.
func (ex *Execution) Ending() *run.End { return ex.terms(ex.Run).Ending(ex.State, ex.Run, ex.Now()) }

// Ending returns how the run must end after this transition, or nil if it may continue.
func (tx *Tx) Ending() *run.End { return tx.Ex.terms(tx.Run).Ending(tx.State, tx.Run, tx.Now) }

// Terms returns the settings of the agent of tx's run, as far as this process knows them.
func (tx *Tx) Terms() run.Terms { return tx.Ex.terms(tx.Run) }

// StepTime returns the maximum duration of the run's next step, or zero if this process has no step to do.
func (ex *Execution) StepTime() time.Duration {
	st, a := ex.Next()
	if st == run.StepSettle && ex.Ending() != nil { // a call in progress is interrupted, not awaited
		return ex.Limits().ToolTimeout
	}
	return ex.timeOf(st, a, ex.Run)
}

func (l *Env) timeOf(st run.Step, a *run.Action, r run.Run) time.Duration {
	switch st {
	case run.StepDone, run.StepWait, run.StepElsewhere:
		return 0
	case run.StepCallModel:
		return l.Agents.Limits(r.Agent).ModelTimeout
	case run.StepSettle, run.StepExecute, run.StepLookUp:
		return l.Agents.Limits(r.Agent).OfCall(l.Tools[a.Tool], a.Args)
	default:
		return l.Agents.Limits(r.Agent).ToolTimeout
	}
}
