// Package allowlist is the function for a user's own settings: the always-allow list at /api/agent/allowlist, agents'
// tokens, devices for Web Push, e-mails about waiting approvals, and the notes that the assistant keeps about the user.
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
