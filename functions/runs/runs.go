// Package runs is the function that shows a run, streams its numbered events, records its client's answers, cancels it,
// issues its receipt, and starts to undo an action: /api/agent/runs/{runId}.
package runs

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/decides"
	"github.com/countersign-run/countersign/shared/app/files"
	"github.com/countersign-run/countersign/shared/app/receipts"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("runs", app.Serve(api.Runs, app.Users, decides.Parts, servers.Part, receipts.Part,
		files.Part))
}
