// Package approvalsresolve is the function that records the caller's decision about a waiting action: POST
// /api/agent/approvals/resolve. The resume function executes the action.
package approvalsresolve

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/decides"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/signs"
)

func init() {
	functions.HTTP("approvals-resolve", app.Serve(api.ApprovalsResolve, app.Users, decides.Parts, servers.Part,
		repositories.Parts, signs.Part))
}
