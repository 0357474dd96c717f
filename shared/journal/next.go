package journal

import (
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/run"
)

// LostLeases returns how many owners in a row, before this execution, have let the run's lease lapse.
func (ex *Execution) LostLeases(r run.Run) int {
	if r.Lease.Owner != "" && r.Lease.Owner != ex.Owner {
		return r.Lease.Lapsed + 1
	}
	return r.Lease.Lapsed
}

// retryDelay returns by how much the lease of a later attempt is longer, so that the next attempt comes later: 0, 2, 4,
// 8 and 16 minutes.
func retryDelay(lost int) time.Duration {
	if lost == 0 {
		return 0
	}
	return time.Minute << min(lost, run.MaxAttempts)
}

// leaseUntil returns until when a lease lasts that covers a step of need from now on, or the first period of it.
func (l *Env) leaseUntil(now time.Time, need time.Duration, lost int) time.Time {
	return now.Add(min(need, l.LeasePeriod) + l.LeaseMargin + retryDelay(lost))
}

// terms returns what the run's agent has set, as far as it is known here.
func (l *Env) terms(r run.Run) run.Terms {
	t := run.Terms{Tools: l.Tools}
	if its := l.Agents.Get(r.Agent); its != nil {
		t.Known, t.Here, t.ModelCalls = true, l.Serves(r.Agent), its.Limits.ModelCalls
		t.Budget = its.Limits.Budget
		t.Sequential, t.Strict = its.Order == agents.Sequential, its.Order == agents.Strict
		t.RejectContinues, t.RejectFails = its.OnReject == agents.RejectContinues, its.OnReject == agents.RejectFails
	}
	return t
}

// Next returns what the run needs next of this process, and the action concerned, if any.
func (ex *Execution) Next() (run.Step, *run.Action) {
	return ex.terms(ex.Run).Next(ex.State, ex.Run, ex.Now())
}

// Next returns what the run needs after this transition.
func (tx *Tx) Next() (run.Step, *run.Action) {
	return tx.Ex.terms(tx.Run).Next(tx.State, tx.Run, tx.Now)
}

// Ending returns how the run must end that may not go on, or nil.
func (ex *Execution) Ending() *run.End { return ex.terms(ex.Run).Ending(ex.State, ex.Run, ex.Now()) }

// Ending returns how the run must end after this transition, or nil.
func (tx *Tx) Ending() *run.End { return tx.Ex.terms(tx.Run).Ending(tx.State, tx.Run, tx.Now) }

// TermsOf returns what the agent of the tx's run has set, as far as it is known here.
func TermsOf(tx *Tx) run.Terms { return tx.Ex.terms(tx.Run) }

// StepTime returns how long the run's next step may take, or zero when there is none for this process.
func (ex *Execution) StepTime() time.Duration {
	st, a := ex.Next()
	if st == run.StepSettle && ex.Ending() != nil { // what is under way is ended, and not waited for
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
	case run.StepSettle, run.StepExecute:
		return l.Agents.Limits(r.Agent).OfCall(l.Tools[a.Tool], a.Args)
	default:
		return l.Agents.Limits(r.Agent).ToolTimeout
	}
}
