// Package plans is the function that begins sessions of the planner, and takes what their users say of a plan:
// /api/agent/plans. It moves none of them.
package plans

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/decides"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/repositories"
)

func init() {
	functions.HTTP("plans", app.Serve(api.Plans, app.Users, decides.Parts, github.Part, repositories.Parts))
}
