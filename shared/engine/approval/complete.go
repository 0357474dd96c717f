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

// Completion holds the parts that a tool added to a call when the call was proposed (tool.Def.Complete, tool.Def.Warn
// and tool.Def.Preconditions). It is empty if the tool adds nothing, and for a call that is refused for another reason.
type Completion struct {
	Args   json.RawMessage
	Err    error // why the call is refused
	unread bool  // the present state could not be read
	Seen
}

// looks reports whether the tool reads the present state for the card of a call.
func looks(t *tool.Tool) bool { return t.Warns() || t.Rests() }

// CompleteCalls asks the tools of the turn's calls to complete the arguments and to look at the present state, before
// the transition that records the turn. Calls that the transition refuses anyway are left out. After a state that could
// not be read, it reads no further ones.
func CompleteCalls(ctx context.Context, ex *unit.Execution, turn int, calls []model.Call) []Completion {
	out := make([]Completion, len(calls))
	look := true
	for i, c := range calls[:min(len(calls), model.MaxCalls)] {
		t := ex.ToolOf(c.Name, false)
		if t == nil || !t.Completes() && !looks(t) || readsOnly(ex.State) || ex.ReadLinked(ctx, t, false) != nil {
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
		out[i] = Complete(ex.Linked(asking, t), ex, t, call, look)
		look = look && !out[i].unread
		beat.Release()
	}
	return out
}

// Complete asks a tool to complete the arguments of one call, at the place where the call would act, and to look at the
// present state if the call may get a card.
func Complete(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call, card bool) (out Completion) {
	if card = card && looks(t); !card && !t.Completes() {
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
	if card && out.Err == nil {
		out.Seen, out.unread = look(ctx, ex, t, call)
	}
	return out
}

// maxLookTime is how long a proposal waits for the warnings and the preconditions of its card.
const maxLookTime = 3 * time.Second

// Look asks the tool for what the card of a call shows of the present state.
func Look(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) Seen {
	seen, _ := look(ctx, ex, t, call)
	return seen
}

// look asks the tool for warnings and preconditions. A card without them is better than a call that is refused.
func look(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) (seen Seen, unread bool) {
	if !looks(t) {
		return seen, false
	}
	ctx, cancel := context.WithTimeout(ctx, maxLookTime)
	defer cancel()
	if t.Warns() {
		var err error
		seen.Warnings, err = t.Warn(ctx, call)
		unread = noteUnread(ctx, ex, t, call, err)
	}
	if !t.Rests() {
		return seen, unread
	}
	now, err := t.Preconditions(ctx, call)
	if noteUnread(ctx, ex, t, call, err) {
		return seen, true
	}
	return seen.With(now), unread
}

// noteUnread reports whether the present state could not be read.
func noteUnread(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call, err error) bool {
	if err == nil {
		return false
	}
	ex.LogPanic(ctx, call.ActionID, err)
	ex.Log.InfoContext(ctx, "the present state could not be read for a card", "runId", ex.ID, "tool", t.Name,
		"error", err)
	return true
}

// Seen is the part of the present state that the card of a call shows.
type Seen struct {
	Warnings []tool.Warning // the approval does not cover them
	restsOn  []tool.Precondition
	read     bool // restsOn was read
}

// With returns s with the preconditions that were read, and with the warnings that explain them.
func (s Seen) With(now []tool.Precondition) Seen {
	for _, p := range now {
		s.Warnings = append(s.Warnings, p.Warnings...)
	}
	s.restsOn, s.read = now, true
	return s
}

// on gives the call of the tool the state that was read. If its preconditions were not read, a yes rests on none: the
// card says so, and no permission that the user gave in advance covers the call.
func (s Seen) on(call *run.ProposedCall, t *tool.Tool) {
	call.Warnings, call.RestsOn = s.Warnings, s.restsOn
	if t.Rests() && !s.read && !call.UserInitiated {
		call.Warnings = append(call.Warnings, tool.Warning{Asks: true,
			Text: "The present state that this depends on could not be read, so it is not checked before this is " +
				"done."})
	}
}
