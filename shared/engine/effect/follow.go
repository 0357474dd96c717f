package effect

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Durations for calls that outlast the process that began them (tool.Def.Limit).
const (
	lookAgain  = time.Second      // minimum time between two checks of a call
	lookLater  = 15 * time.Second // after a failed check, another process checks after this time
	pastLimit  = 2 * time.Minute  // time that a call may continue beyond its limit before its user must review it
	interrupts = 15 * time.Second // maximum duration of an interrupt
)

// ErrLater means that nothing more can be found out about a call at present. A process that looks at the run later
// continues.
var ErrLater = errors.New("effect: the outcome is not known yet")

// follow finds out the outcome of a call that may still be in progress, and waits for its end as long as this process
// can. It records nothing while the call is in progress; the next step checks again, here or in another process. If
// over, the call must not continue: follow interrupts it or prevents it from beginning. found reports whether out must
// be recorded.
func follow(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action, over bool) (out tool.Outcome,
	found bool, err error) {
	call := toolCall(ex, a, a.Started.Handle)
	call.Over = over
	if over {
		interrupt(ctx, ex, t, call)
	}
	began := ex.Now()
	out, err = look(ctx, ex, t, call)
	late := !ex.Now().Before(a.UpdatedAt.Add(t.Limit(a.Args) + pastLimit)) // the intent was the call's last event
	switch {
	case err == nil && out.Verdict == tool.Running && late:
		interrupt(ctx, ex, t, call)
		return out, false, markUnknown(ctx, ex, a.ID, "It should have ended long ago, and is still under way.", nil)
	case err == nil && out.Verdict == tool.Running:
		if ex.Now().Sub(began) < lookAgain {
			err = waitToLook(ctx, ex)
		}
		return out, false, err
	case err != nil && late:
		return out, false, markUnknown(ctx, ex, a.ID, "What it was done with does not say what happened.", err)
	case err != nil:
		return out, false, leaveForLater(ctx, ex, a.ID)
	}
	return out, true, nil
}

// look asks the tool for the outcome of the call, and passes on what the call prints. This may take as long as the call
// itself. If this process must end the check, look returns tool.Running, because nothing else is known.
func look(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) (out tool.Outcome, err error) {
	looking, beat := holdLook(ctx, ex, t, call)
	defer beat.Release()
	printed := outputOf(ctx, ex, t, call.ActionID)
	defer printed.Close()
	for try := 1; ; try++ {
		printed.give(&call)
		out, err = t.Reconcile(readFor(looking, ex, t, try), call)
		if err == nil {
			return out, nil
		}
		ex.LogPanic(ctx, call.ActionID, err)
		if looking.Err() != nil && !beat.Lapsed() {
			return tool.Outcome{Verdict: tool.Running}, nil
		}
		ex.Log.WarnContext(ctx, "the outcome of an effect could not be read", "runId", ex.ID, "actionId",
			call.ActionID, "error", err)
		if try == maxCallTries || backOff(looking, ex, try, err) != nil {
			return out, err
		}
	}
}

// holdLook returns a context and a heartbeat for a check. If the run is over, the check is short and no cancel ends it.
func holdLook(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) (context.Context,
	*unit.Heartbeat) {
	if call.Over {
		return ex.Heartbeat(ctx, ex.Limits().ToolTimeout, false)
	}
	return holdCall(ctx, ex, t, timeoutOf(ex, call.ActionID))
}

// waitToLook pauses before the next check, so that a tool that returns at once is not asked continuously.
func waitToLook(ctx context.Context, ex *unit.Execution) error {
	if err := ex.Sleep(ctx, lookAgain); err != nil {
		return unit.StoreError(err)
	}
	return nil
}

// leaveForLater makes the run due after a while, for any process. It returns ErrLater, or the error of the commit.
func leaveForLater(ctx context.Context, ex *unit.Execution, id string) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	err := ex.Transition(ctx, func(tx *unit.Tx) error {
		if a := tx.State.Action(id); a.Status != run.ActionExecuting || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		tx.Changed, tx.DueIn = true, lookLater
		return nil
	})
	if err != nil {
		return err
	}
	return ErrLater
}

// interrupt asks the tool to stop the call. A failure is only logged, because the next check says again that the run is
// over.
func interrupt(ctx context.Context, ex *unit.Execution, t *tool.Tool, call tool.Call) {
	if !t.Interrupts() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), interrupts)
	defer cancel()
	if err := t.Interrupt(ex.Linked(ctx, t), call); err != nil {
		ex.LogPanic(ctx, call.ActionID, err)
		ex.Log.WarnContext(ctx, "a call could not be interrupted", "runId", ex.ID, "actionId", call.ActionID, "error",
			err)
	}
}

// InterruptHeld stops the call of a run that must not continue. It is for a process that does not hold the run: the
// holder may be dead, and the call must end at once.
func InterruptHeld(ctx context.Context, ex *unit.Execution, a *run.Action) {
	t := ex.Toolbox.Tools[a.Tool]
	if t == nil || a.Status != run.ActionExecuting || ex.Ending() == nil {
		return
	}
	interrupt(ctx, ex, t, toolCall(ex, a, a.Started.Handle))
}
