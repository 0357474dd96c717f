package approval

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Completion is what a tool added to a call's arguments when the call was proposed (tool.Def.Complete). It is empty if
// the tool adds nothing, and for a call that is refused for another reason.
type Completion struct {
	Args json.RawMessage
	Err  error // why the call is refused
}

// CompleteCalls asks the tools of the turn's calls to complete the arguments, before the transition that records the
// turn. Calls that the transition refuses anyway are left out.
func CompleteCalls(ctx context.Context, ex *unit.Execution, turn int, calls []model.Call) []Completion {
	out := make([]Completion, len(calls))
	for i, c := range calls[:min(len(calls), model.MaxCalls)] {
		t := ex.ToolOf(c.Name, false)
		if t == nil || !t.Completes() || readsOnly(ex.State) || ex.ReadLinked(ctx, t, false) != nil {
			continue
		}
		args := c.Args
		var err error
		if ex.State.Plan != nil {
			args, _, err = ex.Toolbox.TakeReasoning(ex.Run, ex.State, c.Name, args)
		}
		if err != nil {
			continue
		}
		asking, beat := ex.Heartbeat(ctx, ex.Limits().OfTool(t), true)
		call := ex.Run.ToolCall(run.ActionID(ex.Run.ID, turn, i, 0), args, tool.Place{})
		out[i] = Complete(ex.Linked(asking, t), ex, t, call)
		beat.Release()
	}
	return out
}

// Complete asks a tool to complete the arguments of one call, at the place where the call would act.
func Complete(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) (out Completion) {
	if !t.Completes() {
		return out
	}
	args, wrong := t.Normalize(call.Args)
	in, nowhere := t.Place(ctx, call.Scope())
	if wrong != nil || nowhere != nil { // Validate says so
		return out
	}
	call.Args, call.Place = args, in
	out.Args, out.Err = t.Complete(ctx, call)
	ex.LogPanic(ctx, call.ActionID, out.Err)
	return out
}
