// Package stream is the function that accepts a prompt and streams the run: POST /api/agent/run/stream, one JSON object
// on each line. The run continues if the client disconnects; the client reads the rest from the runs function.
package stream

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/acts"
	"github.com/countersign-run/countersign/shared/app/servers"
)

func init() {
	functions.HTTP("stream", app.Serve(api.Stream, app.Users, acts.Parts, servers.Part))
}
