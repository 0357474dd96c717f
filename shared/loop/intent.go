package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
)

// begun commits the intent: after this, and only after this, its owner may call the provider. The policy is asked again
// in the same commit: a rule or an allowlist entry that is gone by now counts. It reports false where the call may not
// be carried out after all.
func (m *mover) begun(ctx context.Context, t *tool.Tool, id string, started agent.Started) (ok bool, err error) {
	err = m.transition(ctx, func(d *draft) error {
		ok = false
		a := d.state.Action(id)
		if a.Status == agent.ActionExecuting && a.Started == started {
			ok = true // the commit's answer was lost; the intent is there
			return nil
		}
		if d.run.Lease.Held(m.owner, d.now) {
			return errHeld
		}
		fresh := a.Runnable() && started.Attempt == 1
		again := a.Status == agent.ActionExecuting && started.Attempt == a.Started.Attempt+1
		if !fresh && !again || m.ending(d.state, d.run, d.now) != nil {
			return nil
		}
		if stop, err := d.reconsider(a, t); stop || err != nil {
			return err
		}
		ok = true
		return d.intend(a, started)
	})
	return ok, err
}

// intend adds the intent: who carries the call out.
func (d *draft) intend(a *agent.Action, started agent.Started) error {
	if err := d.event(agent.Event{Type: agent.ActionStarted, ActionID: a.ID, Started: &started}); err != nil {
		return err
	}
	d.record(audit.Intent, a, func(e *audit.Entry) { e.Decision = decidedBy(a) })
	return nil
}

// startAtOnce puts the intent of an effect that is allowed into the commit of the turn that asks for it, where nothing
// has to be done in between: that saves a commit. It gives the action's id, or none where the next step is another.
func (d *draft) startAtOnce(ctx context.Context, intent agent.Started) (id string, err error) {
	st, a := d.m.next(d.state, d.run, d.now)
	if st != stepAct || !a.SideEffect || !enough(ctx, d.m.Profile.ToolTimeout) {
		return "", nil
	}
	t := d.m.Tools[a.Tool]
	if t.Prepares() {
		return "", nil
	}
	if stop, err := d.reconsider(a, t); stop || err != nil {
		return "", err
	}
	return a.ID, d.intend(a, intent)
}

// startedAs gives the action that has this intent and no outcome yet.
func (d *draft) startedAs(intent agent.Started) string {
	for _, a := range d.state.Actions {
		if a.Status == agent.ActionExecuting && a.Started == intent {
			return a.ID
		}
	}
	return ""
}

// decidedBy says in the audit what an effect rests on: its user's decision, or the policy's.
func decidedBy(a *agent.Action) string {
	switch {
	case a.Decision != "":
		return string(a.Decision)
	case a.Own:
		return "own_call"
	}
	return a.PolicyDecision
}

// reconsider asks the policy again about a call that is about to be carried out. A call that rests on the allowlist also
// rewrites the user's document, so that an entry taken back meanwhile makes the commit fail instead of being used.
func (d *draft) reconsider(a *agent.Action, t *tool.Tool) (stop bool, err error) {
	if !a.SideEffect {
		return false, nil
	}
	u, err := d.theUser()
	if err != nil {
		return false, err
	}
	if err := u.MayAct(); err != nil {
		return true, d.stop(a, "disabled_user", err)
	}
	v, err := d.verdict(t, a.Args)
	if err != nil {
		return false, err
	}
	asks := a.Decision == "" && asks(v, a.Own)
	switch {
	case v.Mode == policy.Deny:
		return true, d.stop(a, v.Rule, fault.New(fault.Policy, "denied", "%s", v.Reason))
	case asks && a.Status == agent.ActionExecuting:
		return true, d.stop(a, v.Rule, fault.New(fault.Policy, "denied", "What allowed it was taken back before it was done."))
	case asks && d.m.withinCaps(u, d.now) != nil:
		return true, d.stop(a, v.Rule, d.m.withinCaps(u, d.now))
	case asks:
		return true, d.ask(a, agent.KindApproval, v.Reason)
	case a.Decision == "" && !a.Own:
		first := a.Status != agent.ActionExecuting
		return false, d.moveUser(func(u *agent.User) {
			if first {
				u.UseAllowed(v.Entries, d.now)
			}
		})
	}
	return false, nil
}

// stop ends an action that was allowed and may not be carried out any more. One that was begun before is left to its user:
// that it has not happened says nothing about the process that began it, which may only have been stopped.
func (d *draft) stop(a *agent.Action, rule string, why error) error {
	if a.Status == agent.ActionExecuting {
		return d.park(a, begunBefore+" "+refusal(why).Error.Message)
	}
	finished := refusal(why)
	finished.Execution = agent.NotStarted
	if err := d.event(agent.Event{Type: agent.ActionFinished, ActionID: a.ID, Finished: &finished}); err != nil {
		return err
	}
	d.record(audit.Denied, a, func(e *audit.Entry) { e.Rule, e.ErrorCode = rule, string(finished.Error.Class) })
	return nil
}
