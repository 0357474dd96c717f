// Package resumeterminal is the function that advances the runs of agents on terminals. It has a push subscription of
// its own. It is the only function that connects to users' hosts for a run. The functions that start and show runs and
// record decisions only evaluate commands.
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
