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

// The names of the tools that the model uses to propose a plan and to reflect.
const (
	ProposeTool = "propose_plan"
	ReflectTool = "reflect"
)

// Proposing returns the tool that proposes a plan. It has no Execute function: the call waits for its user, and its
// canonical arguments are the plan. The tool's place is the account that the grants are for, if any.
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

// placed returns a grantable tool that acts on an account, or nil. All grantable tools act in the same repository, or
// in the session's own containers.
func placed(tools tool.Set) *tool.Tool {
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if t := tools[name]; t.SideEffect && t.Pins() && t.Placed() {
			return t
		}
	}
	return nil
}

// refineTarget describes a target, which can be any object. Its Go type does not say that.
func refineTarget(s *jsonschema.Schema) {
	target := s.Properties["grants"].Items.Properties["target"]
	*target = jsonschema.Schema{Type: "object", Description: target.Description}
}

// Reflecting returns the tool that the model uses to report on the current task. It has no Execute function;
// [Session.Judge] returns the consequences of a call.
func Reflecting() *tool.Tool { return reflecting() }

var reflecting = sync.OnceValue(func() *tool.Tool {
	return tool.Define(tool.Def[Reflection, struct{}]{
		Name: ReflectTool,
		Description: "Says what the last observation means for the current task, and whether the task is over. " +
			"When the task is complete, it can also change the open tasks.",
		Normalize: func(r Reflection) (Reflection, error) { return r, r.check() },
	})
})

// DecodeReflection decodes the canonical JSON of a reflection. The error is a ValidationError.
func DecodeReflection(canonical json.RawMessage) (Reflection, error) {
	var r Reflection
	err := strictjson.Decode(canonical, &r)
	return r, err
}
