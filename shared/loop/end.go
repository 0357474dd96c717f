package loop

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
)

// ending returns how a run must end that may not go on, or nil. Each call of a turn is independent: what was allowed is
// carried out and what is open stays open, whatever became of the others, and the run ends when nothing is left.
func (l *Loop) ending(s *run.State, r run.Run, now time.Time) *run.End {
	its, singleCall := l.Agents.Get(r.Agent), s.Input.SingleCall && len(s.Turns) > 0
	switch {
	case s.Cancelled:
		return failedEnd(fault.New(fault.Policy, codeCancelled, "The run was cancelled."))
	case !now.Before(r.Deadline) && its == nil:
		return failedEnd(fault.New(fault.Policy, fault.CodeAgentGone,
			"The agent %q of this run is no longer available, so the run was ended at its deadline.", r.AgentName()))
	case !now.Before(r.Deadline):
		return failedEnd(fault.New(fault.Policy, codeDeadline, "The run reached its deadline and was ended."))
	case !allTerminal(s):
		return nil
	case failedWith(s, fault.CodeExpired):
		return failedEnd(errExpired)
	case failedWith(s, codeAttempts):
		return failedEnd(errAttempts)
	case its == nil && (rejected(s) || !singleCall): // whether it goes on depends on its agent
		return nil
	case rejected(s) && its.OnReject != agents.RejectContinues:
		return l.rejectedEnd(s, its.OnReject)
	case singleCall:
		return l.singleCallEnd(s)
	case finalCall(s) != nil:
		return l.finalEnd(s)
	case len(s.Turns) >= its.Limits.ModelCalls:
		return l.outOfCallsEnd(s)
	}
	return nil
}

var errExpired = fault.New(fault.Policy, fault.CodeExpired, "The approval expired, so this was not done.")

// expired returns the calls that were neither decided nor answered in time.
func expired(s *run.State, now time.Time) (out []*run.Action) {
	for _, a := range s.Current() {
		if a.Waiting() && a.Kind != run.KindReview && !now.Before(a.ExpiresAt) {
			out = append(out, a)
		}
	}
	return out
}

func rejected(s *run.State) bool {
	return slices.ContainsFunc(s.Current(), func(a *run.Action) bool { return a.Status == run.ActionRejected })
}

// failedWith reports whether a call of the newest turn failed with the code.
func failedWith(s *run.State, code fault.Code) bool {
	return slices.ContainsFunc(s.Current(),
		func(a *run.Action) bool { return a.Error != nil && a.Error.Code == code })
}

func allTerminal(s *run.State) bool {
	for _, a := range s.Current() {
		if !a.Terminal() {
			return false
		}
	}
	return true
}

func failedEnd(f *fault.Error) *run.End {
	return &run.End{Status: run.Failed, Summary: f.Message, Error: run.ErrorInfoOf(f)}
}

// rejectedEnd returns the end of a run whose user rejected one or more of its calls.
func (l *Loop) rejectedEnd(s *run.State, outcome agents.OnReject) *run.End {
	no := "You rejected this, so it was not done."
	if l.effectSummary(s) != "" {
		no = "You rejected part of this."
	}
	if outcome == agents.RejectFails {
		return failedEnd(fault.New(fault.Policy, "rejected", "%s", no))
	}
	return &run.End{Status: run.Completed, Summary: no}
}

// outOfCallsEnd returns the end of a run that has called the model as often as it may, in the server's words and from
// the recorded events.
func (l *Loop) outOfCallsEnd(s *run.State) *run.End {
	for _, a := range s.Current() {
		if a.Status != run.ActionCompleted {
			return failedEnd(fault.New(fault.Model, "too_many_calls",
				"The assistant reached its step limit before it could finish."))
		}
	}
	if len(s.Current()) == 0 {
		return failedEnd(fault.New(fault.Model, "too_many_calls", "The assistant gave no usable answer."))
	}
	return &run.End{Status: run.Completed, Summary: "Done."}
}

// endOrExpire closes what has expired and ends the run where it must end, with everything that follows from it, in one
// commit.
func (ex *execution) endOrExpire(ctx context.Context) error {
	return ex.transition(ctx, func(tx *tx) error {
		if tx.run.Lease.Held(ex.owner, tx.now) {
			return nil
		}
		return tx.applyClock()
	})
}

// applyClock does what follows from the time, a cancel or the last answer alone, if anything: it closes approvals that
// have expired and ends a run that must end.
func (tx *tx) applyClock() error {
	st, _ := tx.ex.next(tx.state, tx.run, tx.now)
	if st == stepExpire {
		for _, a := range expired(tx.state, tx.now) {
			if err := tx.closeExpired(a); err != nil {
				return err
			}
		}
		st, _ = tx.ex.next(tx.state, tx.run, tx.now)
	}
	if st != stepEnd {
		return nil
	}
	return tx.endRun(tx.ex.ending(tx.state, tx.run, tx.now))
}

// closeExpired closes a call whose time is up: its approval, or the wait for its client, which the run outlives.
func (tx *tx) closeExpired(a *run.Action) error {
	if a.WaitsForClient() {
		return tx.leaveUnanswered(a, "This was not answered in time")
	}
	return tx.closeAction(a, failedEnd(errExpired))
}

// endRun closes what is open, records how the run ended, and adds the last message.
func (tx *tx) endRun(end *run.End) error {
	for _, a := range tx.state.Actions {
		if err := tx.closeAction(a, end); err != nil {
			return err
		}
	}
	out := *end
	out.Summary = strings.TrimSpace(tx.ex.outcomeSummary(tx.state) + "\n" + end.Summary)
	if out.Error != nil {
		p := *out.Error
		p.Message = out.Summary
		out.Error = &p
	}
	if err := tx.addEvent(run.Event{Type: run.RunEnded, End: &out}); err != nil {
		return err
	}
	return tx.appendLastMessage(&out, finalLength(tx.state, out.Summary))
}

// closeAction closes an action that will no longer be carried out.
func (tx *tx) closeAction(a *run.Action, end *run.End) error {
	waiting := a.Waiting()
	if waiting && a.Kind != run.KindCall {
		if err := tx.closeApproval(a.ApprovalID, closedStatus(end), ""); err != nil {
			return err
		}
	}
	if !waiting && !a.Runnable() || a.Kind == run.KindReview && waiting {
		return nil // it has its outcome already; an unknown one stays unknown
	}
	p := &run.ErrorInfo{Class: fault.Policy, Code: codeCancelled, Message: "It was not done."}
	if end.Error != nil {
		p = &run.ErrorInfo{Class: end.Error.Class, Code: end.Error.Code, Message: end.Error.Message}
	}
	finished := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted, Error: p}
	if err := tx.addEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: finished}); err != nil {
		return err
	}
	if a.SideEffect {
		kind := audit.Cancelled
		if p.Code == fault.CodeExpired {
			kind = audit.Expired
		}
		tx.addAudit(kind, a, func(e *audit.Entry) { setErrorInfo(e, p) })
	}
	return nil
}

func closedStatus(end *run.End) run.ApprovalStatus {
	if end.Error != nil && end.Error.Code == fault.CodeExpired {
		return run.ApprovalExpired
	}
	return run.ApprovalCancelled
}

// closeApproval gives an open approval its final status and counts it out of its user's open ones.
func (tx *tx) closeApproval(id string, to run.ApprovalStatus, decision run.Decision) error {
	a, err := tx.approval(id)
	if err != nil {
		return err
	}
	a.Status, a.Decision, a.DecidedAt = to, decision, tx.now
	return tx.updateUser(func(u *run.User) { u.Open = max(0, u.Open-1) })
}
