// Package threads is the function that lists, reads and deletes the caller's conversations: /api/agent/threads.
package threads

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("threads", app.Serve(api.Threads, app.Users))
}
