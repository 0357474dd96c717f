package chat

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// verbatimModel is a model whose answers a browser can keep without a change. A browser reads 9007199254740993 as
// 9007199254740992. An answer with such a number would come back changed, and no longer match its seal and its thought
// signature. The model gets a correction instead and is called again.
type verbatimModel struct{ model.Wrapped }

// Generate calls the model. The run's limit of model calls applies.
func (m verbatimModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	r, err := m.Model.Generate(ctx, req, delta)
	if err != nil || r.Correction != "" {
		return r, err
	}
	if err := strictjson.Exact(r.Content); err != nil {
		f := fault.As(err)
		r.Content, r.Calls = nil, nil
		r.Correction = fmt.Sprintf("Your last answer could not be used (%s): %s. Nothing was done.", f.Field, f.Message)
	}
	return r, nil
}
