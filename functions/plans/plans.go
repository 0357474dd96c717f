// Package plans is the function that starts planner sessions and records what users decide about plans:
// /api/agent/plans. It advances no session.
package plans

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/decides"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/signs"
)

func init() {
	functions.HTTP("plans", app.Serve(api.Plans, app.Users, decides.Parts, github.Part, repositories.Parts,
		signs.Part))
}
