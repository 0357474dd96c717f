package effect

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// How calls are followed that outlast the process that began them (tool.Def.Limit).
const (
	lookAgain  = time.Second      // at least this lies between two looks at a call
	lookLater  = 15 * time.Second // after a look that failed, another process looks
	pastLimit  = 2 * time.Minute  // that a call may go on after its limit, before it is left to its user
	interrupts = 15 * time.Second // that interrupting a call may take
)

// ErrLater means that nothing more can be found out about a call for now: whichever process looks at the run later goes
// on with it.
var ErrLater = errors.New("effect: look again later")

// follow finds out what became of a call that may still be under way, and waits for its end as long as this process
// can. It records nothing of one that is still under way: the next step looks again, here or in another process. A call
// that must not go on is ended, or never begun. It reports whether it found anything out that is to be recorded.
func follow(ctx context.Context, ex *journal.Execution, t *tool.Tool, a *run.Action, over bool) (out tool.Outcome,
	found bool, err error) {
	call := toolCall(ex, a, a.Started.Handle)
	call.Over = over
	if over {
		interrupt(ctx, ex, t, call)
	}
	began := ex.Now()
	out, err = look(ctx, ex, t, call)
	late := !ex.Now().Before(a.UpdatedAt.Add(t.Limit(a.Args) + pastLimit)) // the intent was its last event
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

// look asks the tool what became of the call, which may take as long as the call: it then passes on what is printed. A
// look that this process has to end says that the call is under way, since nothing else is known.
func look(ctx context.Context, ex *journal.Execution, t *tool.Tool, call tool.Call) (out tool.Outcome, err error) {
	looking, hold := holdLook(ctx, ex, t, call)
	defer hold.Release()
	printed := outputOf(ctx, ex, t, call.ActionID)
	defer printed.Close()
	for try := 1; ; try++ {
		printed.give(&call)
		out, err = t.Reconcile(readFor(looking, ex, t, try), call)
		if err == nil {
			return out, nil
		}
		ex.LogPanic(ctx, call.ActionID, err)
		if looking.Err() != nil && !hold.Lapsed() {
			return tool.Outcome{Verdict: tool.Running}, nil
		}
		ex.Log.WarnContext(ctx, "what became of an effect could not be asked", "runId", ex.ID, "actionId",
			call.ActionID, "error", err)
		if try == maxCallTries || backOff(looking, ex, try, err) != nil {
			return out, err
		}
	}
}

// holdLook returns a context for a look. At a call whose run is over it is short, and no cancel ends it.
func holdLook(ctx context.Context, ex *journal.Execution, t *tool.Tool, call tool.Call) (context.Context,
	*journal.Hold) {
	if call.Over {
		return journal.HoldRun(ctx, ex, ex.Limits().ToolTimeout, false)
	}
	return holdCall(ctx, ex, t, timeoutOf(ex, call.ActionID))
}

// waitToLook keeps a tool that does not wait for its calls from being asked without a pause.
func waitToLook(ctx context.Context, ex *journal.Execution) error {
	if err := ex.Sleep(ctx, lookAgain); err != nil {
		return journal.StoreError(err)
	}
	return nil
}

// leaveForLater leaves the run to whichever process looks at it after a while. The error is ErrLater.
func leaveForLater(ctx context.Context, ex *journal.Execution, id string) error {
	ctx, cancel := journal.Detached(ctx)
	defer cancel()
	err := ex.Transition(ctx, func(tx *journal.Tx) error {
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

// interrupt has the tool end what the call does. A failure is only logged: whoever asks what became of the call says
// again that its run is over.
func interrupt(ctx context.Context, ex *journal.Execution, t *tool.Tool, call tool.Call) {
	if !t.Interrupts() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), interrupts)
	defer cancel()
	if err := t.Interrupt(journal.Linked(ctx, ex, t), call); err != nil {
		ex.LogPanic(ctx, call.ActionID, err)
		ex.Log.WarnContext(ctx, "a call could not be interrupted", "runId", ex.ID, "actionId", call.ActionID, "error",
			err)
	}
}

// InterruptHeld ends what the run's call does, if the run must not go on, for a process that does not hold the run:
// whoever holds it may be dead, and the call is to end at once.
func InterruptHeld(ctx context.Context, ex *journal.Execution, a *run.Action) {
	t := ex.Tools[a.Tool]
	if t == nil || a.Status != run.ActionExecuting || ex.Ending() == nil {
		return
	}
	interrupt(ctx, ex, t, toolCall(ex, a, a.Started.Handle))
}
