// Package geminiagent is the function that takes one turn of the agent on a terminal for a client that turns the loop
// itself, in Gemini's own form: POST /api/gemini/agent. The client keeps the conversation, sealed; each command becomes
// a run of its own, which another function carries out, so this one connects to no host.
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
