package loop

import (
	"cmp"
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// countStart counts the run and its first model call, so that two simultaneous runs cannot both use the last one of the
// day.
func countStart(tx *unit.Tx, n needs) error {
	limits := tx.Ex.UserLimits
	if limits.None() {
		return nil
	}
	if !n.noModel {
		tx.Run.Counted.Calls = 1
	}
	return tx.UpdateUser(func(u *run.User) {
		u.Usage.CountStart(limits, tx.Now)
		u.Usage.CountUse(tx.Now, tx.Run.Counted.Calls, 0)
	})
}

// overBudget ends a run whose user may not call the model again today. Earlier effects stay, and the summary names
// them.
func overBudget(ctx context.Context, ex *unit.Execution) (over bool, err error) {
	if ex.UserLimits.None() {
		return false, nil
	}
	u, err := ex.User(ctx)
	if err != nil || checkShare(ex, u, ex.Run, ex.State, ex.Now()) == nil {
		return false, err
	}
	err = ex.Transition(ctx, func(tx *unit.Tx) error {
		u, err := tx.User()
		if err != nil {
			return err
		}
		why := checkShare(ex, u, tx.Run, tx.State, tx.Now)
		if over = why != nil; !over {
			return nil
		}
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		return endRun(tx, run.FailedEnd(fault.As(why)))
	})
	return over, err
}

// checkShare returns nil if the user may call the model again today, or the reason why not.
func checkShare(ex *unit.Execution, u *run.User, r run.Run, s *run.State, now time.Time) error {
	return u.Usage.CheckModelBudget(ex.UserLimits, now, s.ModelCalls-r.Counted.Calls, s.Tokens-r.Counted.Tokens)
}

// overRunBudget ends a run whose budget does not suffice for the request. Earlier effects stay, and the summary names
// them.
func overRunBudget(ctx context.Context, ex *unit.Execution, req model.Request) (over bool, err error) {
	end := runOverrun(ex, req)
	if end == nil {
		return false, nil
	}
	return true, ex.Transition(ctx, func(tx *unit.Tx) error {
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		return endRun(tx, end)
	})
}

// runOverrun returns how a run ends whose budget does not suffice for the request, or nil if it suffices.
func runOverrun(ex *unit.Execution, req model.Request) *run.End {
	b, name := ex.Limits().Budget, ""
	if b.Money > 0 {
		name = modelName(ex, req)
	}
	o := b.CheckRequest(ex.State, name, promptTokens(ex.State, req), int(req.Settings.MaxOutputTokens))
	switch {
	case name != "" && !b.Priced(name): // a request without a model's name fails with its own error
		return run.FailedEnd(fault.New(fault.Model, run.CodeRunBudget,
			"The model %s has no configured price, so its cost cannot be limited.", name))
	case o != nil:
		return run.OverrunEnd(o)
	}
	return nil
}

// modelName returns the name of the model that the request goes to.
func modelName(ex *unit.Execution, req model.Request) string {
	return cmp.Or(req.Settings.Name, ex.Model.Name())
}

// answeredBy returns the name that the answered request gave to the model.
func answeredBy(ex *unit.Execution, r *model.Reply) string {
	return cmp.Or(r.Backup, conversation.OwnModel(ex))
}

// answeredName returns the name of the model that answered, as prices name it.
func answeredName(ex *unit.Execution, r *model.Reply) string {
	return cmp.Or(answeredBy(ex, r), ex.Model.Name())
}

// promptTokens estimates the tokens of the request: those that the service counted for the previous request and its
// answer, plus an estimate for the rest.
func promptTokens(s *run.State, req model.Request) int {
	known, counted := s.Size()
	n := len(s.Compressions)
	switch {
	case known == 0 || len(req.Contents) == 0:
		return requestBytes(req)/run.BytesPerToken + 1
	case n > 0 && s.Compressions[n-1].Turn == counted: // the compression has estimated this request
		return known
	}
	since := req.Contents[len(req.Contents)-1] // the tool responses, a correction, or the prompt
	return known + len(since)/run.BytesPerToken + model.FileTokens(since) + 1
}

// estimateTokens estimates the tokens of a model call from its bytes. It returns 0 if the service has counted them.
func estimateTokens(req model.Request, reply *model.Reply) int {
	if (run.Turn{Usage: reply.Usage}).Tokens() > 0 {
		return 0
	}
	answer := len(reply.Content)
	if answer == 0 {
		answer = len(reply.Text) // the text is otherwise part of the content
	}
	return (requestBytes(req)+answer)/run.BytesPerToken + 1
}

// requestBytes returns the size of the model's input in bytes. A file counts as the text that has its tokens.
func requestBytes(req model.Request) int {
	n := len(req.System) + model.FileTokens(req.Contents...)*run.BytesPerToken
	for _, c := range req.Contents {
		n += len(c)
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}
