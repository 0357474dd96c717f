// Package stream is the function that takes a prompt and streams the run: POST /api/agent/run/stream, one JSON object
// per line. The run continues when the client disconnects; the client reads the rest from the runs function.
package stream

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
	functions.HTTP("stream", app.Serve(api.Stream, app.Users, pubsub.Part, gemini.Part, traces.Part, tools.Part,
		actions.Part, agents.Part, servers.Part, accounts.Part, fetch.Part, metrics.Part))
}
