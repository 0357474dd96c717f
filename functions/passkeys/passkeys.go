// Package passkeys is the function that adds, lists, names and removes the caller's passkeys: /api/agent/passkeys. It
// alone can sign passkeys.
package passkeys

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/enrols"
)

func init() {
	functions.HTTP("passkeys", app.Serve(api.Passkeys, app.Users, enrols.Part))
}
