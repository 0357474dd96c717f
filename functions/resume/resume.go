// Package resume is the function that moves a run on: the target of the Pub/Sub push subscription. It acts on what the store says,
// never on a message's word, and only for a caller with the push account's OIDC token.
package resume

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/tools"
)

func init() {
	functions.HTTP("resume", app.Function("resume", app.Push, pubsub.Part, gemini.Part, tools.Part, actions.Part, accounts.Part))
}
