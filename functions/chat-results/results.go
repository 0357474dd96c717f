// Package results is the function that receives the results of a page's tools and continues the conversation: POST
// /api/agent/chat/results.
package results

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/files"
	"github.com/countersign-run/countersign/shared/app/moves"
)

func init() {
	functions.HTTP("chat-results", app.Serve(api.ChatResults, app.Users, moves.Parts, agents.Pages, app.Chat,
		files.Part))
}
