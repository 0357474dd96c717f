// Package resumeterminal is the function that advances the runs of agents that work on terminals: the target of a push
// subscription of its own. It alone connects to people's hosts for a run; the functions that begin runs, show them and
// take decisions only judge commands.
package resumeterminal

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
	"github.com/countersign-run/countersign/shared/app/terminals"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/app/traces"
)

func init() {
	functions.HTTP("resume-terminal", app.Serve(api.ResumeTerminal, app.Push, pubsub.Part, gemini.Part, traces.Part,
		tools.Part, actions.Part, agents.Part, reminders.Part, accounts.Part, fetch.Part, terminals.Commands,
		metrics.Part))
}
