// Package forwards is the part that has another function record what users decide. The functions that answer users of a
// chat protocol have it, because their model reads text from strangers: a fault in them cannot sign a decision.
package forwards

import (
	"context"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
)

// Part sends decisions to DECISIONS_URL. Without that setting, or while decisions are not signed, the function records
// them itself.
var Part = app.Part{Name: "forwards", Open: func(_ context.Context, b *app.Builder) error {
	if b.Config.DecisionsURL != "" && b.Env.Decisions != nil {
		b.API.Forward = &api.Forward{URL: b.Config.DecisionsURL + api.ApprovalsResolve.Routes[0].Path}
	}
	return nil
}}
