// Package mcp is the function that serves agents of other programs over the Model Context Protocol: POST /mcp. Their
// calls need the user's approval like any others.
package mcp

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/mcp"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("mcp", app.Serve(api.MCP, mcp.Part, acts.Parts, servers.Part))
}
