// Package allowlist is the function of what the caller has set for themselves: their "always allow" entries at
// /api/agent/allowlist, their agents' tokens, the devices on which they are told of what waits, and whether they are
// mailed what has waited.
package allowlist

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/devices"
)

func init() {
	functions.HTTP("allowlist", app.Serve(api.Allowlist, app.Users, devices.Part))
}
