// Package resume is the function that moves a run on: the target of the Pub/Sub push subscription. It acts on what the store says,
// never on a message's word, and only for a caller with the push account's OIDC token.
package resume

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("resume", app.Function("resume"))
}
