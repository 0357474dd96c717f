// Package connections is the function that links the caller's Google account and unlinks it: /api/agent/connections.
package connections

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("connections", app.Function("connections"))
}
