// Package chat is the function that takes a user's message to the agent of a page: POST /api/agent/chat. The page keeps
// the conversation; actions with an effect become runs of their own.
package chat

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/moves"
)

func init() {
	functions.HTTP("chat", app.Serve(api.Chat, app.Users, moves.Parts, agents.Pages, app.Chat))
}
