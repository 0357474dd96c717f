package conversation

import (
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// maxObservation is how many bytes of what a call returned the model of a session is told.
const maxObservation = 16 << 10

// callInSession is what the model of a session is told that answers in words.
const callInSession = "Words alone do nothing here. Call a tool: " + plan.ProposeTool +
	" while you plan, or the next step of the task, and " + plan.ReflectTool + " when the task is over."

// observed cuts what the calls returned to what the model of a session is told of each.
func observed(responses []model.Response) {
	for i, r := range responses {
		if len(r.Result) > maxObservation {
			responses[i].Result = strictjson.Text(clip.Text(string(r.Result), maxObservation))
		}
	}
}
