package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
)

// Advance takes the run as far as it can go alone: until it is over, or waits, or the function's time is nearly up, when
// it hands over through the queue. A run that another process moves is left to it (Held). It acts on what the store
// says, never on a message's word, so a delivery that comes twice or late finds nothing to do. A run that nobody can move is
// set back (SetBack).
func (l *Loop) Advance(ctx context.Context, runID string, emit Sink) (*agent.RunView, error) {
	m := l.mover(runID, emit)
	v, err := m.resume(ctx)
	if stuck(err) && !SetBack(err) {
		return nil, m.setBack(ctx, err)
	}
	return v, err
}

func (m *mover) resume(ctx context.Context) (*agent.RunView, error) {
	if err := m.attempt(ctx); err != nil {
		return nil, err
	}
	if m.run.ID == "" {
		return nil, fault.NotFound()
	}
	return m.advance(ctx)
}

// step is what a run needs next.
type step int

const (
	stepDone   step = iota // it has ended
	stepWait               // somebody must answer
	stepEnd                // it must be ended without anything else being done
	stepSettle             // an effect was started and has no outcome
	stepExpire             // an approval has expired, and others are left
	stepAct                // a call may be carried out
	stepPlan               // the model is to be asked
)

// next decides what the run needs. It is a pure function of the run and the time.
func (l *Loop) next(s *agent.State, r agent.Run, now time.Time) (step, *agent.Action) {
	if s.End != nil {
		return stepDone, nil
	}
	for _, a := range s.Actions {
		if a.Status == agent.ActionExecuting {
			return stepSettle, a
		}
	}
	if l.ending(s, r, now) != nil {
		return stepEnd, nil
	}
	for _, a := range s.Current() {
		if a.Runnable() {
			return stepAct, a
		}
	}
	if len(expired(s, now)) > 0 {
		return stepExpire, nil
	}
	if len(s.Open()) > 0 {
		return stepWait, nil
	}
	return stepPlan, nil
}

// stepTime is how long the run's next step may take, zero when there is none for this process.
func (l *Loop) stepTime(s *agent.State, r agent.Run, now time.Time) time.Duration {
	switch st, _ := l.next(s, r, now); st {
	case stepDone, stepWait:
		return 0
	case stepPlan:
		return l.Profile.ModelTimeout
	default:
		return l.Profile.ToolTimeout
	}
}

// ending says how a run must end that may not go on, or nil. Each call of a turn stands for itself: what was allowed is
// carried out and what is open stays open, whatever became of the others, and the run ends when nothing is left.
func (l *Loop) ending(s *agent.State, r agent.Run, now time.Time) *agent.End {
	switch {
	case s.Cancelled:
		return failure(fault.New(fault.Policy, codeCancelled, "The run was cancelled."))
	case !now.Before(r.Deadline):
		return failure(fault.New(fault.Policy, codeDeadline, "The run took longer than it may and was ended."))
	case !allOver(s):
		return nil
	case failedWith(s, fault.CodeExpired):
		return failure(errExpired)
	case failedWith(s, codeAttempts):
		return failure(errAttempts)
	case rejected(s) && l.Profile.RejectOutcome != RejectContinues:
		return l.afterReject(s)
	case s.Question.Direct && len(s.Turns) > 0:
		return l.calledEnd(s)
	case len(s.Turns) >= l.Profile.MaxModelCalls:
		return l.outOfCalls(s)
	}
	return nil
}

var errExpired = fault.New(fault.Policy, fault.CodeExpired, "Nobody answered in time, so what waited was not done.")

// expired are the calls whose approval nobody gave in time.
func expired(s *agent.State, now time.Time) (out []*agent.Action) {
	for _, a := range s.Current() {
		if a.Waiting() && a.Kind == agent.KindApproval && !now.Before(a.ExpiresAt) {
			out = append(out, a)
		}
	}
	return out
}

func rejected(s *agent.State) bool {
	return slices.ContainsFunc(s.Current(), func(a *agent.Action) bool { return a.Status == agent.ActionRejected })
}

// failedWith reports whether a call of the newest turn failed with the code.
func failedWith(s *agent.State, code fault.Code) bool {
	return slices.ContainsFunc(s.Current(), func(a *agent.Action) bool { return a.Error != nil && a.Error.Code == code })
}

func allOver(s *agent.State) bool {
	for _, a := range s.Current() {
		if !a.Over() {
			return false
		}
	}
	return true
}

func failure(f *fault.Error) *agent.End {
	return &agent.End{Status: agent.Failed, Summary: f.Message, Error: agent.ProblemOf(f)}
}

// afterReject ends a run whose user said no to one of its calls or more.
func (l *Loop) afterReject(s *agent.State) *agent.End {
	no := "You said no, so it was not done."
	if l.account(s) != "" {
		no = "You said no to a part of it."
	}
	if l.Profile.RejectOutcome == RejectFails {
		return failure(fault.New(fault.Policy, "rejected", "%s", no))
	}
	return &agent.End{Status: agent.Completed, Summary: no}
}

// outOfCalls ends a run that has asked the model as often as it may: in our words, from what is on record.
func (l *Loop) outOfCalls(s *agent.State) *agent.End {
	for _, a := range s.Current() {
		if a.Status != agent.ActionCompleted {
			return failure(fault.New(fault.Model, "too_many_calls", "The assistant could not finish within the number of steps that it has."))
		}
	}
	if len(s.Current()) == 0 {
		return failure(fault.New(fault.Model, "too_many_calls", "The assistant gave no answer that could be used."))
	}
	return &agent.End{Status: agent.Completed, Summary: "Done."}
}

// advance makes steps until there is none left for this process.
func (m *mover) advance(ctx context.Context) (*agent.RunView, error) {
	for {
		st, a := m.next(m.state, m.run, m.now())
		if st != stepDone && st != stepWait && m.run.Lease.Held(m.owner, m.now()) {
			return nil, errHeld
		}
		if need := m.stepTime(m.state, m.run, m.now()); need > 0 && m.worked && !enough(ctx, need) {
			return m.handOver(ctx)
		}
		var err error
		switch {
		case st == stepDone || st == stepWait:
			return m.view(), nil
		case m.exhausted(st):
			err = m.giveUpOn(ctx, st, a)
		case st == stepEnd || st == stepExpire:
			err = m.end(ctx)
		case st == stepSettle:
			err = m.settle(ctx, a.ID)
		case st == stepAct:
			err = m.act(ctx, a.ID)
		case st == stepPlan:
			err = m.plan(ctx)
		}
		if errors.Is(err, errHandOver) {
			return m.handOver(ctx)
		}
		if err != nil {
			return nil, err
		}
		m.worked = true
	}
}

// errHandOver says that the step was cut short by the function's time, not by its own.
var errHandOver = errors.New("loop: out of time")

// enough reports whether the step fits into what is left of the function's time.
func enough(ctx context.Context, need time.Duration) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) >= need+reserve
}

// bounded gives a step its own time, within the function's less what the last commit needs.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Second, min(limit, time.Until(end)-reserve))
	}
	return context.WithTimeout(ctx, limit)
}

// lasting gives a commit that must not be lost time of its own, even where the caller's has run out.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

// handOver lets the run go and asks for it to be taken up by another call of the function. If the request is lost, the
// sweep finds the run.
func (m *mover) handOver(ctx context.Context) (*agent.RunView, error) {
	ctx, cancel := lasting(ctx)
	defer cancel()
	err := m.transition(ctx, func(d *draft) error {
		if d.state.End == nil && d.run.Lease.Owner == m.owner {
			d.touched, d.soon = true, true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.publish(ctx)
	return m.view(), nil
}

// publish asks for the run to be moved. That it failed is no failure: the run is due soon, and the sweep looks.
func (m *mover) publish(ctx context.Context) {
	if err := m.Queue.Resume(ctx, m.id); err != nil {
		m.Log.WarnContext(ctx, "a resume could not be published; the sweep will find the run", "runId", m.id, "error", err)
	}
}

// claim makes sure, durably, that this process moves the run for the length of a step.
func (m *mover) claim(ctx context.Context, need time.Duration) error {
	mine := func(r agent.Run) bool {
		return r.Lease.Owner == m.owner && r.Lease.Until.Sub(m.now()) >= need
	}
	if mine(m.run) {
		return nil
	}
	return m.transition(ctx, func(d *draft) error {
		if d.run.Lease.Held(m.owner, d.now) {
			return errHeld
		}
		d.touched = !mine(d.run) && d.state.End == nil
		return nil
	})
}

// end closes what has expired and ends the run where it must end, with all that hangs on it, in one commit.
func (m *mover) end(ctx context.Context) error {
	return m.transition(ctx, func(d *draft) error {
		if d.run.Lease.Held(m.owner, d.now) {
			return nil
		}
		return d.lapse()
	})
}

// lapse does what the clock, a cancel or the last answer alone makes of the run, if anything: approvals that have
// expired are closed, and a run that must end is ended.
func (d *draft) lapse() error {
	st, _ := d.m.next(d.state, d.run, d.now)
	if st == stepExpire {
		for _, a := range expired(d.state, d.now) {
			if err := d.giveUp(a, failure(errExpired)); err != nil {
				return err
			}
		}
		st, _ = d.m.next(d.state, d.run, d.now)
	}
	if st != stepEnd {
		return nil
	}
	return d.end(d.m.ending(d.state, d.run, d.now))
}

// end closes what is open, says how it ended, and ends the run.
func (d *draft) end(end *agent.End) error {
	for _, a := range d.state.Actions {
		if err := d.giveUp(a, end); err != nil {
			return err
		}
	}
	out := *end
	out.Summary = strings.TrimSpace(d.m.report(d.state) + "\n" + end.Summary)
	if out.Error != nil {
		p := *out.Error
		p.Message = out.Summary
		out.Error = &p
	}
	if err := d.event(agent.Event{Type: agent.RunEnded, End: &out}); err != nil {
		return err
	}
	return d.conclude(&out, 0)
}

// giveUp closes an action that will not be carried out any more.
func (d *draft) giveUp(a *agent.Action, end *agent.End) error {
	waiting := a.Waiting()
	if waiting && a.Kind != agent.KindCall {
		if err := d.closeApproval(a.ApprovalID, closedAs(end), ""); err != nil {
			return err
		}
	}
	if !waiting && !a.Runnable() || a.Kind == agent.KindReview && waiting {
		return nil // it has its outcome; an unknown one stays unknown
	}
	p := &agent.Problem{Class: fault.Policy, Code: codeCancelled, Message: "It was not done."}
	if end.Error != nil {
		p = &agent.Problem{Class: end.Error.Class, Code: end.Error.Code, Message: end.Error.Message}
	}
	finished := &agent.Finished{Status: agent.ActionFailed, Execution: agent.NotStarted, Error: p}
	if err := d.event(agent.Event{Type: agent.ActionFinished, ActionID: a.ID, Finished: finished}); err != nil {
		return err
	}
	if a.SideEffect {
		kind := audit.Cancelled
		if p.Code == fault.CodeExpired {
			kind = audit.Expired
		}
		d.record(kind, a, func(e *audit.Entry) { describe(e, p) })
	}
	return nil
}

func closedAs(end *agent.End) agent.ApprovalStatus {
	if end.Error != nil && end.Error.Code == fault.CodeExpired {
		return agent.ApprovalExpired
	}
	return agent.ApprovalCancelled
}

// closeApproval takes an approval out of the open ones.
func (d *draft) closeApproval(id string, to agent.ApprovalStatus, decision agent.Decision) error {
	a, err := d.approval(id)
	if err != nil {
		return err
	}
	a.Status, a.Decision, a.DecidedAt = to, decision, d.now
	return d.moveUser(func(u *agent.User) { u.Open = max(0, u.Open-1) })
}
