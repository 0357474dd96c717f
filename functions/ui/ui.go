// Package ui is the function that serves the AI SDK's useChat: POST /api/agent/ui with the user's words or answers, and
// GET /api/agent/ui/{threadId}/stream, which resumes.
package ui

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
	functions.HTTP("ui", app.Serve(api.UI, app.Users, pubsub.Part, gemini.Part, traces.Part, tools.Part, actions.Part,
		agents.Part, servers.Part, accounts.Part, fetch.Part, repositories.Part, tools.Containers, metrics.Part))
}
