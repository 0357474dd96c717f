// Package run is the function that takes a prompt: POST /api/agent/run. It stores the run, calls Gemini, and answers
// when the run is over or waits for its user.
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
