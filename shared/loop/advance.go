package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
)

// Advance moves the run until it has ended, or waits, or the function's time is nearly up, when it hands the run over
// through the queue. A run that another process moves is left to that process ([Held]). Advance acts on what the store
// says, never on the content of a message, so a message that is delivered twice or late finds nothing to do. A run that
// no process can move is postponed ([Postponed]).
func (l *Loop) Advance(ctx context.Context, runID string, emit Sink) (*agent.RunView, error) {
	ex := l.newExecution(runID, emit)
	v, err := ex.resume(ctx)
	if stuck(err) && !Postponed(err) {
		return nil, ex.postpone(ctx, err)
	}
	return v, err
}

func (ex *execution) resume(ctx context.Context) (*agent.RunView, error) {
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
	stepElsewhere             // it must be moved by a process that knows its agent
)

// next returns what the run needs next of this process, and the action concerned, if any. It is a pure function of the
// run, the time and the agents. What moves a run needs its agent; expiring a call and ending the run do not.
func (l *Loop) next(s *agent.State, r agent.Run, now time.Time) (step, *agent.Action) {
	st, a := l.needs(s, r, now)
	moves := st == stepSettle || st == stepExecute || st == stepCallModel
	switch {
	case !moves || l.Agents.Get(r.Agent) != nil:
		return st, a
	case st == stepSettle && !now.Before(r.Deadline): // the run is about to be ended, and whatever its tool says counts
		return st, a
	case len(expired(s, now)) > 0:
		return stepExpire, nil
	}
	return stepElsewhere, nil
}

// needs returns what the run needs next, whoever does it.
func (l *Loop) needs(s *agent.State, r agent.Run, now time.Time) (step, *agent.Action) {
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
func (l *Loop) stepTime(s *agent.State, r agent.Run, now time.Time) time.Duration {
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

// ending returns how a run must end that may not go on, or nil. Each call of a turn is independent: what was allowed is
// carried out and what is open stays open, whatever became of the others, and the run ends when nothing is left.
func (l *Loop) ending(s *agent.State, r agent.Run, now time.Time) *agent.End {
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
func expired(s *agent.State, now time.Time) (out []*agent.Action) {
	for _, a := range s.Current() {
		if a.Waiting() && a.Kind != agent.KindReview && !now.Before(a.ExpiresAt) {
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
	return slices.ContainsFunc(s.Current(),
		func(a *agent.Action) bool { return a.Error != nil && a.Error.Code == code })
}

func allTerminal(s *agent.State) bool {
	for _, a := range s.Current() {
		if !a.Terminal() {
			return false
		}
	}
	return true
}

func failedEnd(f *fault.Error) *agent.End {
	return &agent.End{Status: agent.Failed, Summary: f.Message, Error: agent.ErrorInfoOf(f)}
}

// rejectedEnd returns the end of a run whose user rejected one or more of its calls.
func (l *Loop) rejectedEnd(s *agent.State, outcome agents.OnReject) *agent.End {
	no := "You rejected this, so it was not done."
	if l.effectSummary(s) != "" {
		no = "You rejected part of this."
	}
	if outcome == agents.RejectFails {
		return failedEnd(fault.New(fault.Policy, "rejected", "%s", no))
	}
	return &agent.End{Status: agent.Completed, Summary: no}
}

// outOfCallsEnd returns the end of a run that has called the model as often as it may, in the server's words and from
// the recorded events.
func (l *Loop) outOfCallsEnd(s *agent.State) *agent.End {
	for _, a := range s.Current() {
		if a.Status != agent.ActionCompleted {
			return failedEnd(fault.New(fault.Model, "too_many_calls",
				"The assistant reached its step limit before it could finish."))
		}
	}
	if len(s.Current()) == 0 {
		return failedEnd(fault.New(fault.Model, "too_many_calls", "The assistant gave no usable answer."))
	}
	return &agent.End{Status: agent.Completed, Summary: "Done."}
}

// advance makes steps until none is left for this process.
func (ex *execution) advance(ctx context.Context) (*agent.RunView, error) {
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
func (ex *execution) leave(ctx context.Context) (*agent.RunView, error) {
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
func (ex *execution) handOver(ctx context.Context) (*agent.RunView, error) {
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
	if err := ex.Queue.Resume(ctx, ex.id); err != nil {
		ex.Log.WarnContext(ctx, "a resume could not be published; the sweep will find the run", "runId", ex.id, "error",
			err)
	}
}

// claim makes sure, durably, that this process holds the run for at least need.
func (ex *execution) claim(ctx context.Context, need time.Duration) error {
	mine := func(r agent.Run) bool {
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
func (tx *tx) closeExpired(a *agent.Action) error {
	if a.WaitsForClient() {
		return tx.leaveUnanswered(a, "This was not answered in time")
	}
	return tx.closeAction(a, failedEnd(errExpired))
}

// endRun closes what is open, records how the run ended, and adds the last message.
func (tx *tx) endRun(end *agent.End) error {
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
	if err := tx.addEvent(agent.Event{Type: agent.RunEnded, End: &out}); err != nil {
		return err
	}
	return tx.appendLastMessage(&out, finalLength(tx.state, out.Summary))
}

// closeAction closes an action that will no longer be carried out.
func (tx *tx) closeAction(a *agent.Action, end *agent.End) error {
	waiting := a.Waiting()
	if waiting && a.Kind != agent.KindCall {
		if err := tx.closeApproval(a.ApprovalID, closedStatus(end), ""); err != nil {
			return err
		}
	}
	if !waiting && !a.Runnable() || a.Kind == agent.KindReview && waiting {
		return nil // it has its outcome already; an unknown one stays unknown
	}
	p := &agent.ErrorInfo{Class: fault.Policy, Code: codeCancelled, Message: "It was not done."}
	if end.Error != nil {
		p = &agent.ErrorInfo{Class: end.Error.Class, Code: end.Error.Code, Message: end.Error.Message}
	}
	finished := &agent.Finished{Status: agent.ActionFailed, Execution: agent.NotStarted, Error: p}
	if err := tx.addEvent(agent.Event{Type: agent.ActionFinished, ActionID: a.ID, Finished: finished}); err != nil {
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

func closedStatus(end *agent.End) agent.ApprovalStatus {
	if end.Error != nil && end.Error.Code == fault.CodeExpired {
		return agent.ApprovalExpired
	}
	return agent.ApprovalCancelled
}

// closeApproval gives an open approval its final status and counts it out of its user's open ones.
func (tx *tx) closeApproval(id string, to agent.ApprovalStatus, decision agent.Decision) error {
	a, err := tx.approval(id)
	if err != nil {
		return err
	}
	a.Status, a.Decision, a.DecidedAt = to, decision, tx.now
	return tx.updateUser(func(u *agent.User) { u.Open = max(0, u.Open-1) })
}
