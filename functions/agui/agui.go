// Package agui is the function that serves clients of AG-UI: POST /api/agent/agui with their RunAgentInput.
package agui

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
	functions.HTTP("agui", app.Serve(api.AGUI, app.Users, acts.Parts, servers.Part, repositories.Parts, forwards.Part))
}
