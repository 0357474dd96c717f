// Package run is the function that takes a prompt: POST /api/agent/run. It stores the run, calls Gemini, and answers
// when the run is over or waits for its user.
package run

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
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
)

func init() {
	functions.HTTP("run", app.Serve(api.Run, app.Users, pubsub.Part, gemini.Part, traces.Part, tools.Part, actions.Part,
		agents.Part, servers.Part, accounts.Part, fetch.Part, metrics.Part))
}
