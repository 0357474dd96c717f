// Package resumeterminal is the function that advances the runs of agents that work on terminals: the target of a push
// subscription of its own. It alone connects to people's hosts for a run; the functions that begin runs, show them and
// take decisions only judge commands.
package resumeterminal

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/terminals"
)

func init() {
	functions.HTTP("resume-terminal", app.Serve(api.ResumeTerminal, app.Push, acts.Parts, reminders.Part,
		terminals.Connect))
}
