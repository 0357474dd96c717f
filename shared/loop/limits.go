package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// mayStart holds the limits of what a user may use before anything is begun for them; the day's share of the model
// matters only where the model will be asked.
func (l *Loop) mayStart(u *agent.User, asksModel bool, now time.Time) error {
	if err := u.Spent.MayBegin(l.Profile.Limits, now); err != nil || !asksModel {
		return err
	}
	return u.Spent.MayAskModel(l.Profile.Limits, now, 0, 0)
}

// countStart counts the run, and with it its first call of the model, so that two runs that begin at once cannot both
// be the day's last.
func (d *draft) countStart(q Ask) error {
	limits := d.m.Profile.Limits
	if limits.None() {
		return nil
	}
	if q.Call == nil {
		d.run.Settled.Calls = 1
	}
	return d.moveUser(func(u *agent.User) {
		u.Spent.Begin(limits, d.now)
		u.Spent.Use(d.now, d.run.Settled.Calls, 0)
	})
}

// settleUse counts what the run has used of the model since it was last counted: at its end, and wherever its user's
// document is written anyway.
func (d *draft) settleUse() error {
	if d.m.Profile.Limits.None() || d.state.End == nil && !d.userMoved {
		return nil
	}
	used := agent.Settled{Calls: max(d.run.Settled.Calls, d.state.Asked+d.unanswered), Tokens: max(d.run.Settled.Tokens, d.state.Tokens)}
	calls, tokens := used.Calls-d.run.Settled.Calls, used.Tokens-d.run.Settled.Tokens
	if calls == 0 && tokens == 0 {
		return nil
	}
	d.run.Settled = used
	return d.moveUser(func(u *agent.User) { u.Spent.Use(d.now, calls, tokens) })
}

// overBudget ends a run whose user has no share of the model left for its next call: what was done before stays done
// and is told.
func (m *mover) overBudget(ctx context.Context) (over bool, err error) {
	if m.Profile.Limits.None() {
		return false, nil
	}
	err = m.transition(ctx, func(d *draft) error {
		over = false
		u, err := d.theUser()
		if err != nil {
			return err
		}
		settled := d.run.Settled
		why := u.Spent.MayAskModel(m.Profile.Limits, d.now, d.state.Asked-settled.Calls, d.state.Tokens-settled.Tokens)
		if why == nil {
			return nil
		}
		over = true
		if st, _ := m.next(d.state, d.run, d.now); st != stepPlan || d.run.Lease.Owner != m.owner {
			return nil
		}
		return d.end(failure(fault.As(why)))
	})
	return over, err
}

// Used is what the user's run has used of the model so far.
func (l *Loop) Used(ctx context.Context, uid, runID string) (agent.Settled, error) {
	m := l.mover(runID, nil)
	if err := m.loadOwn(ctx, uid); err != nil {
		return agent.Settled{}, err
	}
	return agent.Settled{Calls: m.state.Asked, Tokens: m.state.Tokens}, nil
}

// bytesPerToken is what a token is about where nobody counted.
const bytesPerToken = 4

// estimate is how many tokens a call of the model was about, by its bytes; none where the service has counted them.
func estimate(req model.Request, reply *model.Reply) int {
	if (agent.Turn{Usage: reply.Usage}).Tokens() > 0 {
		return 0
	}
	n := len(req.System) + len(reply.Content) + len(reply.Text)
	if len(reply.Content) > 0 {
		n -= len(reply.Text) // it is in the content
	}
	for _, c := range req.Contents {
		n += len(c)
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n/bytesPerToken + 1
}
