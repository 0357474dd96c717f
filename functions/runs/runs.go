// Package runs is the function that shows a run, sends its numbered events, and cancels it: /api/agent/runs/{runId}.
package runs

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("runs", app.Function("runs"))
}
