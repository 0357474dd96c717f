// Package stream is the function that takes a prompt and tells as it goes: POST /api/agent/run/stream, one JSON object a line.
// A client that goes away stops nothing; it reads the rest from the runs function.
package stream

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/app"
)

func init() {
	functions.HTTP("stream", app.Function("stream"))
}
