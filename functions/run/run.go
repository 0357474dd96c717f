// Package run is the function that accepts a prompt: POST /api/agent/run. It stores the run, calls Gemini, and answers
// when the run has ended or waits for the user.
package run

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("run", app.Serve(api.Run, app.Users, acts.Parts, servers.Part))
}
