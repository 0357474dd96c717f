// Package moves is the bundle for functions that call the model.
package moves

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/traces"
)

// Parts publishes runs to resume, calls the model, sends telemetry, and has the declared actions.
var Parts = app.Part{Of: []app.Part{pubsub.Part, traces.Part, metrics.Part, gemini.Part, actions.Part}}
