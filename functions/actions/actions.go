// Package actions is the function that runs one declared action for the calling user: POST /api/agent/actions/{name}.
// An action with a side effect becomes a run of its own.
package actions

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/signs"
)

func init() {
	functions.HTTP("actions", app.Serve(api.Actions, app.Users, pubsub.Part, metrics.Part, actions.Part, agents.Pages,
		signs.Part))
}
