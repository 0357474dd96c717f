// Package files is the function that stores an uploaded file for later prompts: POST /api/agent/files.
package files

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/files"
)

func init() {
	functions.HTTP("files", app.Serve(api.Files, app.Users, files.Uploads))
}
