// Package actions is the function that does one declared action for the user who calls it: POST /api/agent/actions/{name}.
// An action with a side effect is a run of its own, on the record.
package actions

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/pubsub"
)

func init() {
	functions.HTTP("actions", app.Function("actions", app.Users, pubsub.Part, actions.Part))
}
