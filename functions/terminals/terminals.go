// Package terminals is the function that stores the caller's hosts and the terminals on them: /api/agent/hosts and
// /api/agent/terminals.
package terminals

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/terminals"
)

func init() {
	functions.HTTP("terminals", app.Serve(api.Terminals, app.Users, terminals.Connect, terminals.Hosts))
}
