// Package decides is the bundle for functions that show runs and record decisions. They evaluate calls but execute
// none.
package decides

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/metrics"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/tools"
)

// Parts has all built-in tools, declared actions and agents, and publishes runs to resume.
var Parts = app.Part{Of: []app.Part{pubsub.Part, metrics.Part, tools.Part, actions.Part, agents.Part}}
