// Package approvalspending is the function that lists the caller's waiting approvals: GET /api/agent/approvals/pending.
package approvalspending

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("approvals-pending", app.Serve(api.ApprovalsPending, app.Users, app.Reading))
}
