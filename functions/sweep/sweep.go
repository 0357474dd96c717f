// Package sweep is the function that finds runs that a crash left behind (lapsed leases, lost resumes, expired
// approvals) and publishes them for resume. Cloud Scheduler calls it with its own account's OIDC token.
package sweep

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/objects"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/translog"
)

func init() {
	functions.HTTP("sweep", app.Serve(api.Sweep, app.Push, pubsub.Part, pubsub.Sweeping, metrics.Part, agents.Ending,
		objects.Part, translog.Part))
}
