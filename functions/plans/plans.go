// Package plans is the function that begins sessions of the planner, and takes what their users say of a plan:
// /api/agent/plans. It moves none of them.
package plans

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/tools"
)

func init() {
	functions.HTTP("plans", app.Serve(api.Plans, app.Users, pubsub.Part, tools.Part, actions.Part, agents.Part,
		github.Part, repositories.Part, tools.Containers, metrics.Part))
}
