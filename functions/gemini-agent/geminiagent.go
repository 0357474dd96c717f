// Package geminiagent is the function that takes one turn of the terminal agent, in Gemini's own format, for a client
// that drives the loop itself: POST /api/gemini/agent. The client keeps the sealed conversation. Each command becomes a
// run of its own, which another function executes, so this function connects to no host.
package geminiagent

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/moves"
	"github.com/countersign-run/countersign/shared/app/tools"
)

func init() {
	functions.HTTP("gemini-agent", app.Serve(api.GeminiAgent, app.Users, moves.Parts, tools.Part, agents.Part,
		app.Chat))
}
