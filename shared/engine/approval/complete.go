package approval

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Completion is what a tool added to a call's arguments when the call was proposed (tool.Def.Complete). It is empty if
// the tool adds nothing.
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
		if err == nil {
			args, err = t.Normalize(args)
		}
		if err != nil {
			continue
		}
		in, err := t.Place(ex.Linked(ctx, t), ex.Run.Scope())
		if err != nil {
			continue
		}
		call := ex.Run.ToolCall(run.ActionID(ex.Run.ID, turn, i, 0), args, in)
		asking, beat := ex.Heartbeat(ctx, ex.Limits().OfTool(t), true)
		out[i].Args, out[i].Err = t.Complete(ex.Linked(asking, t), call)
		beat.Release()
		ex.LogPanic(ctx, call.ActionID, out[i].Err)
	}
	return out
}
