// Package audit is the function that shows the caller's own audit entries with their hash chain: GET /api/agent/audit.
package audit

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("audit", app.Serve(api.Audit, app.Users, app.Reading))
}
