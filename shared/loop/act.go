package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// tries is how often a provider is asked in one go for something that provably did not happen.
const tries = 3

// act carries out a call that is allowed. For a side effect the order is: handle, intent (durable), effect, outcome
// (durable). A death between any two of these is settled by settle.
func (m *mover) act(ctx context.Context, id string) error {
	a := m.state.Action(id)
	t := m.Tools[a.Tool]
	if t == nil {
		return m.outcome(ctx, id, refusal(fault.New(fault.Tool, "no_such_tool", "This tool is no longer offered.")))
	}
	if err := m.stillFits(ctx, a, t); err != nil {
		return m.outcome(ctx, id, refusal(err))
	}
	if t.Waits() {
		return m.await(ctx, id)
	}
	handle := ""
	if t.Prepares() {
		if mine, err := m.claimCall(ctx, id); err != nil || !mine {
			return err
		}
		var err error
		if handle, err = m.prepare(ctx, t, a); err != nil {
			return m.outcome(ctx, id, refusal(err))
		}
	}
	if !t.SideEffect && !a.RequiresApproval {
		if mine, err := m.claimCall(ctx, id); err != nil || !mine {
			return err
		}
		return m.effect(ctx, t, id)
	}
	begun, err := m.begun(ctx, t, id, agent.Started{Owner: m.owner, Attempt: 1, Handle: handle})
	if err != nil || !begun {
		return err
	}
	return m.effect(ctx, t, id)
}

// claimCall claims the run to carry out the call. It reports false where another process has begun the call meanwhile: with
// the lease of that process, which lapsed, this one has taken over an effect that is to be settled, and not a call to make.
func (m *mover) claimCall(ctx context.Context, id string) (mine bool, err error) {
	if err := m.claim(ctx, m.Profile.ToolTimeout); err != nil {
		return false, err
	}
	st, next := m.next(m.state, m.run, m.now())
	return st == stepAct && next.ID == id, nil
}

// stillFits checks what may have changed since the call was judged: the stored arguments, and where it would act.
func (m *mover) stillFits(ctx context.Context, a *agent.Action, t *tool.Tool) error {
	if agent.ArgsHash(m.run.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
		return fault.New(fault.Policy, fault.CodeIntegrity, "What is stored is not what was approved, so it was not done.")
	}
	in, err := t.Place(ctx, m.run.UID)
	if err != nil {
		return err
	}
	return tool.SamePlace(a.Place, in)
}

func (m *mover) call(a *agent.Action, handle string) tool.Call {
	return tool.Call{UID: m.run.UID, Origin: m.run.Origin, RunID: m.run.ID, ActionID: a.ID, Args: a.Args, Handle: handle, Place: a.Place}
}

// prepare makes the tool's handle. Whatever goes wrong, no effect has taken place.
func (m *mover) prepare(ctx context.Context, t *tool.Tool, a *agent.Action) (handle string, err error) {
	ctx, cancel := bounded(ctx, m.Profile.ToolTimeout)
	defer cancel()
	for try := 1; ; try++ {
		handle, err = t.Prepare(ctx, m.call(a, ""))
		m.panicked(ctx, a.ID, err)
		if err == nil || !tool.IsTransient(err) || try == tries {
			return handle, err
		}
		if err := m.backOff(ctx, try); err != nil {
			return "", err
		}
	}
}

// backOff waits before the next try: 0 to 1, 2, 4 seconds.
func (m *mover) backOff(ctx context.Context, try int) error {
	return m.Sleep(ctx, m.spread(time.Second<<(try-1)))
}

// effect calls the provider until it is known what happened, or known that this cannot be known here.
func (m *mover) effect(ctx context.Context, t *tool.Tool, id string) error {
	a := m.state.Action(id)
	call := m.call(a, a.Started.Handle)
	acting, cancel := bounded(ctx, m.Profile.ToolTimeout)
	defer cancel()
	begun := a.Started.Attempt > 1 // somebody else may still be at it
	for try := 1; ; try++ {
		result, err := t.Execute(acting, call)
		m.panicked(ctx, id, err)
		switch {
		case err == nil:
			return m.outcome(ctx, id, success(result))
		case t.SideEffect && tool.IsAmbiguous(err):
			begun = begun || tool.IsUnanswered(err)
			m.Log.WarnContext(ctx, "the outcome of an effect is not clear", "runId", m.id, "actionId", id, "error", err)
			out, known := m.reconcile(acting, t, call)
			if !known {
				return m.park(ctx, id, out.Reason)
			}
			if out.Verdict == tool.Done {
				return m.outcome(ctx, id, success(out.Result))
			}
		case !tool.IsTransient(err):
			return m.failed(ctx, t, id, err, begun)
		}
		if try == tries || m.backOff(acting, try) != nil {
			return m.failed(ctx, t, id, err, begun)
		}
	}
}

// panicked logs what a tool's function died of: to the user it is one failure among others.
func (l *Loop) panicked(ctx context.Context, id string, err error) {
	if tool.IsPanic(err) {
		l.Log.ErrorContext(ctx, "a tool panicked", "counter", "tool_panic", "actionId", id, "error", err)
	}
}

// failed records that the call had no effect. Of a second try that says nothing about the first, which may still arrive:
// its process may only have been stopped, its request may only be late.
func (m *mover) failed(ctx context.Context, t *tool.Tool, id string, err error, begun bool) error {
	if begun {
		return m.notAgain(ctx, t, id, err)
	}
	return m.outcome(ctx, id, refusal(err))
}

// reconcile asks the tool what became of a call, a few times if need be; known is false where it cannot tell.
func (m *mover) reconcile(ctx context.Context, t *tool.Tool, call tool.Call) (out tool.Outcome, known bool) {
	ctx, cancel := lasting(ctx)
	defer cancel()
	var err error
	for try := 1; try <= tries; try++ {
		out, err = t.Reconcile(ctx, call)
		if err == nil {
			return out, out.Verdict != tool.Unknown
		}
		m.Log.WarnContext(ctx, "what became of an effect could not be asked", "runId", m.id, "actionId", call.ActionID, "error", err)
		if try < tries && m.backOff(ctx, try) != nil {
			break
		}
	}
	return tool.Outcome{Verdict: tool.Unknown, Reason: "The service that was asked does not say what became of it."}, false
}

// settle finds out what became of an effect that another process has started, or an earlier life of this one.
func (m *mover) settle(ctx context.Context, id string) error {
	if err := m.claim(ctx, m.Profile.ToolTimeout); err != nil {
		return err
	}
	a := m.state.Action(id)
	if a.Status != agent.ActionExecuting {
		return nil
	}
	t := m.Tools[a.Tool]
	if t == nil || t.Waits() {
		return m.park(ctx, id, "The tool that did it is no longer offered.")
	}
	out, known := tool.Outcome{Verdict: tool.NotDone}, true
	if t.SideEffect {
		out, known = m.reconcile(ctx, t, m.call(a, a.Started.Handle))
	}
	switch {
	case !known:
		return m.park(ctx, id, out.Reason)
	case out.Verdict == tool.Done:
		return m.outcome(ctx, id, success(out.Result))
	case m.ending(m.state, m.run, m.now()) != nil:
		return m.notAgain(ctx, t, id, fault.New(fault.Policy, codeCancelled, "The run ended before it was tried again."))
	case a.Started.Attempt >= maxAttempts:
		return m.abandon(ctx, a)
	}
	return m.again(ctx, t, a)
}

// notAgain leaves a call that had not happened and is not to be tried again.
func (m *mover) notAgain(ctx context.Context, t *tool.Tool, id string, why error) error {
	if !t.SideEffect {
		return m.outcome(ctx, id, refusal(why))
	}
	return m.park(ctx, id, begunBefore+" "+refusal(why).Error.Message)
}

// begunBefore is why a call is left to its user that had not happened when it was looked for, and is not to be tried again.
const begunBefore = "It had not been when this was looked up, but somebody had begun it."

// again takes over a call that provably had no effect. What was taken back since the first try counts as it did then.
func (m *mover) again(ctx context.Context, t *tool.Tool, a *agent.Action) error {
	if err := m.stillFits(ctx, a, t); err != nil {
		return m.notAgain(ctx, t, a.ID, err)
	}
	started := agent.Started{Owner: m.owner, Attempt: a.Started.Attempt + 1, Handle: a.Started.Handle}
	begun, err := m.begun(ctx, t, a.ID, started)
	if err != nil || !begun {
		return err
	}
	return m.effect(ctx, t, a.ID)
}

func success(result []byte) agent.Finished {
	if len(result) > maxOutput {
		result = raw(agent.Cut(string(result), maxOutput))
	}
	return agent.Finished{Status: agent.ActionCompleted, Execution: agent.Succeeded, Result: result}
}

// refusal is the outcome of a call that had no effect.
func refusal(err error) agent.Finished {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.Tool, "failed", "The service that was asked could not do it. Nothing was sent or changed.").Because(err)
	}
	return agent.Finished{Status: agent.ActionFailed, Execution: agent.FailedKnown, Error: agent.ProblemOf(f)}
}

// outcome records what became of a call. It is the one commit that must not be lost to the function's time, nor to a
// store that is down for a moment.
func (m *mover) outcome(ctx context.Context, id string, f agent.Finished) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	m.patient = true
	defer func() { m.patient = false }()
	if f.Error != nil {
		m.Log.WarnContext(ctx, "an action failed", "runId", m.id, "actionId", id, "class", f.Error.Class, "code", f.Error.Code)
	}
	return m.transition(ctx, func(d *draft) error {
		a := d.state.Action(id)
		if !d.mine(a) {
			return nil
		}
		if f.Status == agent.ActionFailed && a.Status != agent.ActionExecuting {
			f.Execution = agent.NotStarted
		}
		if err := d.event(agent.Event{Type: agent.ActionFinished, ActionID: id, Finished: &f}); err != nil {
			return err
		}
		if a.SideEffect {
			d.record(audit.Outcome, a, func(e *audit.Entry) { describe(e, f.Error) })
		}
		return nil
	})
}

// mine reports whether this mover is the one who says what became of the action: it wrote the newest intent, or settles
// it under its lease, or holds the run while no intent is there.
func (d *draft) mine(a *agent.Action) bool {
	if a.Over() || a.Waiting() || d.run.Lease.Held(d.m.owner, d.now) {
		return false
	}
	return a.Status != agent.ActionExecuting || a.Started.Owner == d.m.owner || d.run.Lease.Owner == d.m.owner
}

func describe(e *audit.Entry, p *agent.Problem) {
	if p != nil {
		e.ErrorCode, e.Message = string(p.Class), string(p.Code)
	}
}

// park leaves a call whose outcome nobody here can know to its user.
func (m *mover) park(ctx context.Context, id, reason string) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	m.Log.ErrorContext(ctx, "an outcome is unknown and waits for its user", "runId", m.id, "actionId", id)
	return m.transition(ctx, func(d *draft) error {
		a := d.state.Action(id)
		if !d.mine(a) {
			return nil
		}
		return d.park(a, reason)
	})
}

func (d *draft) park(a *agent.Action, reason string) error {
	p := agent.ProblemOf(fault.New(fault.Tool, fault.CodeUnknownOutcome, "Nobody can tell from here whether this was done. %s", reason))
	f := &agent.Finished{Status: agent.ActionFailed, Execution: agent.UnknownState, Error: p}
	if err := d.event(agent.Event{Type: agent.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	d.record(audit.Outcome, a, func(e *audit.Entry) { describe(e, p) })
	return d.ask(a, agent.KindReview, p.Message)
}
