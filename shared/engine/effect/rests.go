package effect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// The error codes of a call that was not made because of what the yes to it rests on.
const (
	CodeChanged   fault.Code = "precondition_changed"
	CodeUnchecked fault.Code = "precondition_unchecked" // it could not be read
)

// stillRests reads again what the yes to a call rests on (tool.Def.Preconditions), before its intent. If that has
// changed or cannot be read, the user is asked again, and stillRests returns false.
func stillRests(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (bool, error) {
	now, why := readAgain(ctx, ex, t, a)
	if why == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if wait, waits := nextCall(ex, a, why); waits {
		return false, postponeCall(ctx, ex, a, wait, "", why)
	}
	return false, askAnew(ctx, ex, t, a.ID, a.Args, now, why)
}

// maxReadTime is the time of one attempt to read what a call rests on.
const maxReadTime = 10 * time.Second

// readAgain reads what the call rests on, up to maxCallTries times. The error says that it has changed, or that it
// could not be read. seen is for the next card of the call.
func readAgain(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (seen approval.Seen, why error) {
	if len(a.RestsOn) == 0 || !t.Rests() {
		return seen, nil
	}
	for try := 1; ; try++ {
		now, err := restsOn(ctx, ex, t, a, try)
		switch {
		case err == nil:
			return compared(a.RestsOn, now)
		case !tool.IsTransient(err) || try == maxCallTries || backOff(ctx, ex, try, err) != nil:
			ex.Log.WarnContext(ctx, "what a call rests on could not be read before it", "counter",
				"precondition_unread", "runId", ex.ID, "actionId", a.ID, "tool", a.Tool, "error", err)
			return seen, fault.New(fault.Policy, CodeUnchecked, "The state that this rests on could not be read "+
				"just before, so it was not done.").After(fault.As(err).RetryAfter).Because(err)
		}
	}
}

// restsOn reads what the call rests on, within maxReadTime.
func restsOn(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action, try int) ([]tool.Precondition,
	error) {
	ctx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	now, err := t.Preconditions(readFor(ctx, ex, t, try), toolCall(ex, a, ""))
	ex.LogPanic(ctx, a.ID, err)
	return now, err
}

// compared returns the next card's part of the state, and an error if the state has changed. The error has no values,
// because the audit and the log get it.
func compared(was, now []tool.Precondition) (approval.Seen, error) {
	changed := tool.Changed(was, now)
	if len(changed) == 0 {
		return approval.Seen{}, nil
	}
	return approval.Seen{Warnings: changed}.With(now), fault.New(fault.Policy, CodeChanged,
		"The state that this rests on has changed, so it was not done.")
}

// lookFor reads the present state for the card of a call that replaces another one.
func lookFor(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string, args json.RawMessage) approval.Seen {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	normal, err := t.Normalize(args)
	if err != nil {
		return approval.Seen{} // the caller finds it
	}
	call := toolCall(ex, ex.State.Action(id), "")
	call.Args = normal
	return approval.Look(ex.Linked(ctx, t), ex, t, call)
}
