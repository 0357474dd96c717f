package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/run"
)

// checkLimits checks the limits on what a user may use before anything is started for them. The day's share of the
// model matters only where the model will be called.
func (l *Loop) checkLimits(u *run.User, asksModel bool, now time.Time) error {
	if err := u.Usage.CheckStart(l.UserLimits, now); err != nil || !asksModel {
		return err
	}
	return u.Usage.CheckModelBudget(l.UserLimits, now, 0, 0)
}

// countStart counts the run, and with it its first call of the model, so that two runs that start at once cannot both
// be the day's last.
func (tx *tx) countStart(req StartRequest) error {
	limits := tx.ex.UserLimits
	if limits.None() {
		return nil
	}
	if req.Call == nil {
		tx.run.Counted.Calls = 1
	}
	return tx.updateUser(func(u *run.User) {
		u.Usage.CountStart(limits, tx.now)
		u.Usage.CountUse(tx.now, tx.run.Counted.Calls, 0)
	})
}

// countUsage counts what the run has used of the model since it was last counted: at its end, and wherever its user's
// document is written anyway.
func (tx *tx) countUsage() error {
	if tx.ex.UserLimits.None() || tx.state.End == nil && !tx.userChanged {
		return nil
	}
	used := run.RunUsage{Calls: max(tx.run.Counted.Calls, tx.state.ModelCalls+tx.unrecordedCalls),
		Tokens: max(tx.run.Counted.Tokens, tx.state.Tokens)}
	calls, tokens := used.Calls-tx.run.Counted.Calls, used.Tokens-tx.run.Counted.Tokens
	if calls == 0 && tokens == 0 {
		return nil
	}
	tx.run.Counted = used
	return tx.updateUser(func(u *run.User) { u.Usage.CountUse(tx.now, calls, tokens) })
}

// overBudget ends a run whose user has no share of the model left for its next call. What was done before stays done,
// and the summary says so.
func (ex *execution) overBudget(ctx context.Context) (over bool, err error) {
	if ex.UserLimits.None() {
		return false, nil
	}
	err = ex.transition(ctx, func(tx *tx) error {
		over = false
		u, err := tx.user()
		if err != nil {
			return err
		}
		counted := tx.run.Counted
		why := u.Usage.CheckModelBudget(ex.UserLimits, tx.now, tx.state.ModelCalls-counted.Calls,
			tx.state.Tokens-counted.Tokens)
		if why == nil {
			return nil
		}
		over = true
		if st, _ := ex.next(tx.state, tx.run, tx.now); st != stepCallModel || tx.run.Lease.Owner != ex.owner {
			return nil
		}
		return tx.endRun(failedEnd(fault.As(why)))
	})
	return over, err
}

// Usage returns what the user's run has used of the model so far.
func (l *Loop) Usage(ctx context.Context, uid, runID string) (run.RunUsage, error) {
	ex := l.newExecution(runID, nil)
	if err := ex.loadOwned(ctx, uid); err != nil {
		return run.RunUsage{}, err
	}
	return run.RunUsage{Calls: ex.state.ModelCalls, Tokens: ex.state.Tokens}, nil
}

// bytesPerToken is the estimated size of a token where the service has not counted them.
const bytesPerToken = 4

// estimateTokens returns about how many tokens a call of the model took, by its bytes, or 0 where the service has
// counted them.
func estimateTokens(req model.Request, reply *model.Reply) int {
	if (run.Turn{Usage: reply.Usage}).Tokens() > 0 {
		return 0
	}
	n := len(req.System) + len(reply.Content) + len(reply.Text)
	if len(reply.Content) > 0 {
		n -= len(reply.Text) // it is part of the content
	}
	for _, c := range req.Contents {
		n += len(c)
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n/bytesPerToken + 1
}
