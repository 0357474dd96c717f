// Package connections is the function that links and unlinks the caller's accounts: /api/agent/connections.
package connections

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/tools"
)

func init() {
	functions.HTTP("connections", app.Serve(api.Connections, app.Users, tools.Part, accounts.Consent, github.Part))
}
