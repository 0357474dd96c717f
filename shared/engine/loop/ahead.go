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

// withinBudget reports whether the user may certainly call the model again today.
func withinBudget(ctx context.Context, ex *unit.Execution) bool {
	if ex.UserLimits.None() {
		return true
	}
	u, err := ex.User(ctx)
	return err == nil && checkShare(ex, u, ex.Run, ex.State, ex.Now()) == nil
}
