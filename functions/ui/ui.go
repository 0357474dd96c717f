// Package ui is the function that serves the AI SDK's useChat: POST /api/agent/ui with the user's words or answers, and
// GET /api/agent/ui/{threadId}/stream, which resumes a stream.
package ui

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/forwards"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("ui", app.Serve(api.UI, app.Users, acts.Parts, servers.Part, repositories.Parts, forwards.Part))
}
