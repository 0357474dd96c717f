// Package mcp is the function that serves the agents of other programs by the Model Context Protocol: POST /mcp. What
// they ask for waits for its user as everything does.
package mcp

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/mcp"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
)

func init() {
	functions.HTTP("mcp", app.Serve(api.MCP, mcp.Part, pubsub.Part, gemini.Part, traces.Part, tools.Part, actions.Part,
		agents.Part, servers.Part, accounts.Part, fetch.Part, metrics.Part))
}
