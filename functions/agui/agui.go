// Package agui is the function that serves clients of AG-UI: POST /api/agent/agui with their RunAgentInput.
package agui

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
)

func init() {
	functions.HTTP("agui", app.Serve(api.AGUI, app.Users, pubsub.Part, gemini.Part, traces.Part, tools.Part,
		actions.Part, agents.Part, servers.Part, accounts.Part, fetch.Part, repositories.Part, tools.Containers,
		metrics.Part))
}
