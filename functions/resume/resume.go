// Package resume is the function that advances a run: the target of the Pub/Sub push subscription. It acts on the
// stored run, never on a message's content, and only for a caller with the push account's OIDC token.
package resume

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
)

func init() {
	functions.HTTP("resume", app.Serve(api.Resume, app.Push, pubsub.Part, gemini.Part, traces.Part, tools.Part,
		actions.Part, agents.Part, reminders.Part, servers.Part, accounts.Part, fetch.Part, metrics.Part))
}
