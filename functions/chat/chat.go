// Package chat is the function that receives a user's message to a page's agent: POST /api/agent/chat. The page keeps
// the conversation. Actions with a side effect become runs of their own.
package chat

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/files"
	"github.com/countersign-run/countersign/shared/app/moves"
)

func init() {
	functions.HTTP("chat", app.Serve(api.Chat, app.Users, moves.Parts, agents.Pages, app.Chat,
		files.Part, files.Uploads))
}
