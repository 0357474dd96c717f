package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// foresight lets a model call begin while the commit before it is under way ([unit.Ahead]).
var foresight = &unit.Foresight{Request: foreseenRequest, Call: askModel}

// foreseenRequest returns the request that callModel will make for the run. ok is false if callModel may do anything
// else: compress the context, end the run at a limit, or fail.
func foreseenRequest(ctx context.Context, next *unit.Execution) (req model.Request, ok bool) {
	next.Toolbox.Refresh(ctx, next.Run.Agent)
	if next.State.Input.Compress || !withinBudget(ctx, next) {
		return req, false
	}
	req, err := request(ctx, next)
	if err != nil || crowded(next, req) || runOverrun(next, req) != nil {
		return req, false
	}
	return req, true
}

// spareCalls is how many calls a user must have left today for a call that begins ahead. Near the limit, a dropped call
// would take the place of one that answers.
const spareCalls = 20

// withinBudget reports whether the user may call the model many more times today.
func withinBudget(ctx context.Context, ex *unit.Execution) bool {
	if ex.UserLimits.None() {
		return true
	}
	u, err := ex.User(ctx)
	used := ex.State.ModelCalls - ex.Run.Counted.Calls + spareCalls
	return err == nil &&
		u.Usage.CheckModelBudget(ex.UserLimits, ex.Now(), used, ex.State.Tokens-ex.Run.Counted.Tokens) == nil
}
