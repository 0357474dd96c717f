package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// forModel builds a request to the named model, whose contents have no signature of another model.
type forModel func(ctx context.Context, name string) (model.Request, error)

// askModel asks the model for the run's next turn.
func askModel(ctx context.Context, ex *unit.Execution, req model.Request, delta func(string)) (*model.Reply, error) {
	return askInOrder(ctx, ex, req, delta, func(ctx context.Context, name string) (model.Request, error) {
		return requestTo(ctx, ex, name)
	})
}

// askInOrder sends the request. While the model is overloaded or has no quota left, and no text has been passed on, it
// asks the run's other models, in the operator's order. A run stays with the model that answered, because a change of
// the model costs the signatures of its answers and the service's cache.
func askInOrder(ctx context.Context, ex *unit.Execution, req model.Request, delta func(string),
	build forModel) (*model.Reply, error) {
	passed := false
	watched := delta
	if delta != nil {
		watched = func(text string) {
			passed = true
			delta(text)
		}
	}
	asked := req.Settings.Name
	others := otherModels(ex, asked)
	reply, err := askOnce(ctx, ex, req, watched, len(others) == 0)
	for i, name := range others {
		if !isBusy(err) || passed || model.AwaitCommit(ctx) != nil {
			break
		}
		other, buildErr := build(ctx, name)
		if buildErr != nil || runOverrun(ex, other) != nil {
			continue // such as a model without a price in a run with a limited cost
		}
		ex.Log.WarnContext(ctx, "a model did not answer; the next one is asked", "runId", ex.ID, "model", asked, "next",
			name, "error", err)
		asked = name
		reply, err = askOnce(ctx, ex, other, watched, i == len(others)-1)
	}
	switch {
	case err == nil && asked != conversation.OwnModel(ex):
		reply.Backup = asked
	case passed && isBusy(err):
		err = fmt.Errorf("%w: %w", errShown, err)
	}
	return reply, err
}

// errShown means that the user has seen the beginning of an answer, so the model is not asked again.
var errShown = errors.New("loop: a part of the answer was shown")

// otherModels returns the models that may answer instead of the named one: the run's own, then the fallbacks.
func otherModels(ex *unit.Execution, asked string) (names []string) {
	if len(ex.Fallbacks) == 0 || !conversation.CanChangeModel(ex.State) {
		return nil
	}
	for _, name := range append([]string{conversation.OwnModel(ex)}, ex.Fallbacks...) {
		if name != asked && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isBusy reports whether another model may answer after this error of a model.
func isBusy(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Class == fault.Model && (f.Code == model.CodeOverloaded || f.Code == model.CodeQuota)
}

// askOnce makes one model call, if the model's quota permits it. It adds the bytes of the files in the contents. last
// means that no other model can be asked instead.
func askOnce(ctx context.Context, ex *unit.Execution, req model.Request, delta func(string), last bool) (*model.Reply,
	error) {
	if err := takeQuota(ctx, ex, req, last); err != nil {
		return nil, err
	}
	contents, release, err := conversation.WithFiles(ctx, ex, req.Contents)
	if err != nil {
		return nil, err
	}
	defer release()
	req.Contents = contents
	ctx, span := ex.TraceModel(ctx, ex.Run, ex.Model, req)
	reply, err := ex.Model.Generate(ctx, req, delta)
	span.EndModel(reply, err)
	return reply, err
}

// takeQuota takes the request's part of the model's quota, or returns the error of a model whose quota is used up. A
// run waits for a part only if no other model can be asked, and books a turn if it can wait without a process.
func takeQuota(ctx context.Context, ex *unit.Execution, req model.Request, last bool) error {
	if ex.Quota == nil {
		return nil
	}
	return ex.Quota.Take(ctx, quota.Call{Model: modelName(ex, req), UID: ex.Run.UID,
		Tokens: promptTokens(ex.State, req), Waited: ex.State.Waits.Count > 0, Holds: last,
		Books: last && ex.ModelPatience > 0 && !ex.Agents.Get(ex.Run.Agent).Page})
}
