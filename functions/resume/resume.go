// Package resume is the function that advances a run. The Pub/Sub push subscription calls it. It acts on the stored
// run, never on a message's content, and only for a caller with the push account's OIDC token.
package resume

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("resume", app.Serve(api.Resume, app.Push, acts.Parts, reminders.Part, servers.Part))
}
