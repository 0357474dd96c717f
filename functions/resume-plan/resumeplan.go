// Package resumeplan is the function that advances planner sessions. It has a push subscription of its own.
package resumeplan

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/containers"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/reminders"
	"github.com/countersign-run/countersign/shared/app/repositories"
)

func init() {
	functions.HTTP("resume-plan", app.Serve(api.ResumePlan, app.Push, acts.Parts, reminders.Part, github.Part,
		repositories.Parts, containers.Part))
}
