// Package actions is the function that carries out one declared action for the user who calls it: POST
// /api/agent/actions/{name}. An action with a side effect is a recorded run of its own.
package actions

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
)

func init() {
	functions.HTTP("actions", app.Serve(api.Actions, app.Users, pubsub.Part, metrics.Part, actions.Part, agents.Pages))
}
