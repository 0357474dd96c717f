// Package run is the function that takes a prompt: POST /api/agent/run. It stores the run, asks Gemini, and answers when the
// run is over or waits for its user.
package run

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("run", app.Function("run"))
}
