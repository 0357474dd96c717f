// Package approvalsresolve is the function that records the caller's decision about a waiting action: POST
// /api/agent/approvals/resolve. The resume function carries it out.
package approvalsresolve

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
)

func init() {
	functions.HTTP("approvals-resolve",
		app.Serve(api.ApprovalsResolve, app.Users, pubsub.Part, tools.Part, actions.Part, agents.Part, servers.Part,
			repositories.Part, tools.Containers, metrics.Part))
}
