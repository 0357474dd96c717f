package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Completion holds the parts that a tool added to a call when the call was proposed (tool.Def.Complete and
// tool.Def.Warn). It is empty if the tool adds nothing, and for a call that is refused for another reason.
type Completion struct {
	Args     json.RawMessage
	Err      error          // why the call is refused
	Warnings []tool.Warning // for the card; the approval does not cover them
	unread   bool           // the warnings could not be read
}

// CompleteCalls asks the tools of the turn's calls to complete the arguments and to warn, before the transition that
// records the turn. Calls that the transition refuses anyway are left out. After warnings that could not be read, it
// asks for no more of them.
func CompleteCalls(ctx context.Context, ex *unit.Execution, turn int, calls []model.Call) []Completion {
	out := make([]Completion, len(calls))
	warn := true
	for i, c := range calls[:min(len(calls), model.MaxCalls)] {
		t := ex.ToolOf(c.Name, false)
		if t == nil || !t.Completes() && !t.Warns() || readsOnly(ex.State) || ex.ReadLinked(ctx, t, false) != nil {
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
		out[i] = Complete(ex.Linked(asking, t), ex, t, call, warn)
		warn = warn && !out[i].unread
		beat.Release()
	}
	return out
}

// Complete asks a tool to complete the arguments of one call, at the place where the call would act, and to warn if the
// call gets a card.
func Complete(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call, warn bool) (out Completion) {
	if warn = warn && t.Warns(); !warn && !t.Completes() {
		return out
	}
	args, wrong := t.Normalize(call.Args)
	in, nowhere := t.Place(ctx, call.Scope())
	if wrong != nil || nowhere != nil { // Validate says so
		return out
	}
	call.Args, call.Place = args, in
	var err error
	if call.Preferences, err = ex.Preferences(ctx, call.UID); err != nil {
		return out // Validate says that the facts could not be read
	}
	if t.Completes() {
		out.Args, out.Err = t.Complete(ctx, call)
		ex.LogPanic(ctx, call.ActionID, out.Err)
		call.Args = out.Args
	}
	if warn && out.Err == nil {
		out.warn(ctx, ex, t, call)
	}
	return out
}

// maxWarnTime is how long a proposal waits for the warnings of its card.
const maxWarnTime = 3 * time.Second

// warn asks the tool for warnings. A card without them is better than a call that is refused.
func (c *Completion) warn(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) {
	ctx, cancel := context.WithTimeout(ctx, maxWarnTime)
	defer cancel()
	var err error
	if c.Warnings, err = t.Warn(ctx, call); err != nil {
		c.unread = true
		ex.LogPanic(ctx, call.ActionID, err)
		ex.Log.InfoContext(ctx, "the warnings of a card could not be read", "runId", ex.ID, "tool", t.Name,
			"error", err)
	}
}
