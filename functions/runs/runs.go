// Package runs is the function that shows a run, sends its numbered events, takes the answers of its client,
// cancels it, hands out its receipt, and begins to take back what was done: /api/agent/runs/{runId}.
package runs

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/decides"
	"github.com/countersign-run/countersign/shared/app/receipts"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("runs", app.Serve(api.Runs, app.Users, decides.Parts, servers.Part, receipts.Part))
}
