// Package allowlist is the function that lists the caller's "always allow" entries, and removes them:
// /api/agent/allowlist.
package allowlist

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("allowlist", app.Serve(api.Allowlist, app.Users))
}
