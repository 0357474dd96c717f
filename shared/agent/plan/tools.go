package plan

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// The names of the tools by which the model speaks of the plan.
const (
	ProposeTool = "propose_plan"
	ReflectTool = "reflect"
)

// Proposing returns the tool whose call proposes a plan. It has no body: the call waits for its user, and its canonical
// arguments are the plan.
// Where it has a place, that is where its grants may be used.
func Proposing(b Bind) *tool.Tool {
	d := tool.Def[Plan, struct{}]{
		Name: ProposeTool,
		Description: "Proposes the whole plan to the user, who confirms it, refines it or rejects it. " +
			"Nothing is done before that.",
		Approval:  tool.Required,
		Refine:    refineTarget,
		Normalize: b.Normalize,
		Preview:   b.Card,
	}
	if t := placed(b.Tools); t != nil {
		d.Place, d.Reads = t.Place, t.Reads
	}
	return tool.Define(d)
}

// placed returns a tool that can be granted and acts in a place, or nil. All that can be granted act in the same
// repository, or in the session's own containers.
func placed(tools tool.Set) *tool.Tool {
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if t := tools[name]; t.SideEffect && t.Bounded() && t.Placed() {
			return t
		}
	}
	return nil
}

// refineTarget says what a target is, which its Go type does not: any object.
func refineTarget(s *jsonschema.Schema) {
	target := s.Properties["grants"].Items.Properties["target"]
	*target = jsonschema.Schema{Type: "object", Description: target.Description}
}

// Reflecting returns the tool by which the model says how the current task stands. It has no body: [Session.Judge] says
// what follows.
func Reflecting() *tool.Tool { return reflecting() }

var reflecting = sync.OnceValue(func() *tool.Tool {
	return tool.Define(tool.Def[Reflection, struct{}]{
		Name: ReflectTool,
		Description: "Says what the last observation means for the current task, and whether the task is over. " +
			"With the task, changes of the tasks that are still to be done may be given.",
		Normalize: func(r Reflection) (Reflection, error) { return r, r.check() },
	})
})

// DecodeReflection returns the reflection of its canonical bytes. The error is a ValidationError.
func DecodeReflection(canonical json.RawMessage) (Reflection, error) {
	var r Reflection
	err := strictjson.Decode(canonical, &r)
	return r, err
}
