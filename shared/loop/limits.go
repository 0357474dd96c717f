package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/run"
)

// countStart counts the run, and with it its first call of the model, so that two runs that start at once cannot both
// be the day's last.
func countStart(tx *journal.Tx, req StartRequest) error {
	limits := tx.Ex.UserLimits
	if limits.None() {
		return nil
	}
	if req.Call == nil {
		tx.Run.Counted.Calls = 1
	}
	return tx.UpdateUser(func(u *run.User) {
		u.Usage.CountStart(limits, tx.Now)
		u.Usage.CountUse(tx.Now, tx.Run.Counted.Calls, 0)
	})
}

// overBudget ends a run whose user has no share of the model left for its next call. What was done before stays done,
// and the summary says so.
func overBudget(ctx context.Context, ex *journal.Execution) (over bool, err error) {
	if ex.UserLimits.None() {
		return false, nil
	}
	err = ex.Transition(ctx, func(tx *journal.Tx) error {
		over = false
		u, err := tx.User()
		if err != nil {
			return err
		}
		counted := tx.Run.Counted
		why := u.Usage.CheckModelBudget(ex.UserLimits, tx.Now, tx.State.ModelCalls-counted.Calls,
			tx.State.Tokens-counted.Tokens)
		if why == nil {
			return nil
		}
		over = true
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		return endRun(tx, run.FailedEnd(fault.As(why)))
	})
	return over, err
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
