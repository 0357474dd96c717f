package effect

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// maxCallTries is how often one execution calls a provider for something that provably did not happen.
const maxCallTries = 3

// timeoutOf returns how long the call may take.
func timeoutOf(ex *journal.Execution, id string) time.Duration {
	return ex.Limits().OfTool(ex.Tools[ex.State.Action(id).Tool])
}

// checkUnchanged checks what may have changed since the call was validated: the stored arguments, and the place where
// it would act.
func checkUnchanged(ctx context.Context, ex *journal.Execution, a *run.Action, t *tool.Tool) error {
	if run.ArgsHash(ex.Run.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
		return fault.New(fault.Policy, fault.CodeIntegrity,
			"The stored action does not match what was approved, so it was not done.")
	}
	in, err := t.Place(journal.Linked(ctx, ex, t), ex.Run.UID)
	if err != nil {
		return err
	}
	return tool.SamePlace(a.Place, in)
}

// readFor returns the context of a try to call a provider: the first one finds what the execution has read, and later
// ones ask the store what the user has linked by then.
func readFor(ctx context.Context, ex *journal.Execution, t *tool.Tool, try int) context.Context {
	if try > 1 {
		return ctx
	}
	return journal.Linked(ctx, ex, t)
}

func toolCall(ex *journal.Execution, a *run.Action, handle string) tool.Call {
	return tool.Call{UID: ex.Run.UID, Origin: ex.Run.Origin, Agent: ex.Run.AgentName(), ThreadID: ex.Run.ThreadID,
		RunID: ex.Run.ID, ActionID: a.ID, Args: a.Args, Handle: handle, Place: a.Place}
}

// prepare returns the handle that the tool prepares. Whatever goes wrong, no effect has taken place.
func prepare(ctx context.Context, ex *journal.Execution, t *tool.Tool, a *run.Action) (handle string, err error) {
	ctx, hold := journal.HoldRun(ctx, ex, ex.Limits().OfTool(t), true)
	defer hold.Release()
	for try := 1; ; try++ {
		handle, err = t.Prepare(readFor(ctx, ex, t, try), toolCall(ex, a, ""))
		ex.LogPanic(ctx, a.ID, err)
		if err == nil || !tool.IsTransient(err) || try == maxCallTries {
			return handle, err
		}
		if err := backOff(ctx, ex, try); err != nil {
			return "", err
		}
	}
}

// backOff waits before the next try: 0 to 1, 2, 4 seconds.
func backOff(ctx context.Context, ex *journal.Execution, try int) error {
	return ex.Sleep(ctx, ex.Jitter(time.Second<<(try-1)))
}

// reconcile asks the tool what became of a call, up to maxCallTries times; known is false where the tool cannot tell.
func reconcile(ctx context.Context, ex *journal.Execution, t *tool.Tool, call tool.Call) (out tool.Outcome,
	known bool) {
	ctx, cancel := journal.Detached(ctx)
	defer cancel()
	var err error
	for try := 1; try <= maxCallTries; try++ {
		out, err = t.Reconcile(ctx, call)
		if err == nil {
			return out, out.Verdict != tool.Unknown
		}
		ex.LogPanic(ctx, call.ActionID, err)
		ex.Log.WarnContext(ctx, "what became of an effect could not be asked", "runId", ex.ID, "actionId",
			call.ActionID, "error", err)
		if try < maxCallTries && backOff(ctx, ex, try) != nil {
			break
		}
	}
	return tool.Outcome{Verdict: tool.Unknown, Reason: "The service does not say what happened."},
		false
}
