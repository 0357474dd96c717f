// Package effect carries calls out. An effect takes place only after a commit that names the process that carries it
// out. Its outcome is recorded, or left to the user if it cannot be known. An effect is never repeated on a guess.
package effect

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
)

// Execute carries out an allowed call. A side effect takes these steps: handle, intent (durable), effect, outcome
// (durable). If the process dies between any two of them, Settle takes over.
func Execute(ctx context.Context, ex *unit.Execution, id string) error {
	a := ex.State.Action(id)
	if err := ex.Toolbox.Renew(ctx, a); err != nil {
		return recordOutcome(ctx, ex, id, failed(err))
	}
	t := ex.ToolOf(a.Tool, a.UserInitiated)
	if t == nil {
		return recordOutcome(ctx, ex, id, failed(errNoTool()))
	}
	// documents that an earlier step has read may be out of date
	if err := ex.ReadLinked(ctx, t, ex.Progressed); err != nil {
		return err
	}
	planned := a
	a, err := checkUnchanged(ctx, ex, planned, t)
	if unread := (errUnread{}); errors.As(err, &unread) {
		return unread.error
	}
	if err != nil {
		ex.LogPanic(ctx, id, err)
		return recordFailure(ctx, ex, t, id, err, false)
	}
	if t.SideEffect && ex.Run.Doubts(a) {
		return askAgain(ctx, ex, t, id)
	}
	if t.Waits() {
		return leaveToClient(ctx, ex, id, t)
	}
	handle, ready, err := handleOf(ctx, ex, t, a)
	if err != nil || !ready {
		return err
	}
	if !t.SideEffect && !a.RequiresApproval {
		if claimed, err := claim(ctx, ex, id); err != nil || !claimed {
			return err
		}
		return CallTool(ctx, ex, t, id)
	}
	started := run.Started{Owner: ex.Owner, Attempt: 1, Handle: handle}
	if a.ArgsHash != planned.ArgsHash {
		started.ArgsHash, started.Place = a.ArgsHash, a.Place
	}
	ok, err := commitIntent(ctx, ex, t, id, started)
	if barred := (errBarred{}); errors.As(err, &barred) {
		return recordOutcome(ctx, ex, id, failed(barred.error))
	}
	if err != nil || !ok {
		return err
	}
	return CallTool(ctx, ex, t, id)
}

// handleOf returns the handle of an approved call: that of a postponed call, or a new one. It returns false if the call
// cannot begin now, or no longer rests on the same facts.
func handleOf(ctx context.Context, ex *unit.Execution, t *tool.Tool, a *run.Action) (h string, ready bool, err error) {
	if rests, err := stillRests(ctx, ex, t, a); err != nil || !rests {
		return "", false, err
	}
	if postponed, err := takeQuota(ctx, ex, t, a); postponed || err != nil {
		return "", false, err
	}
	if h = a.Started.Handle; h != "" || !t.Prepares() {
		return h, true, nil
	}
	if claimed, err := claim(ctx, ex, a.ID); err != nil || !claimed {
		return "", false, err
	}
	if h, err = prepare(ctx, ex, t, a); err != nil {
		return "", false, notPrepared(ctx, ex, a, err)
	}
	return h, true, nil
}

// notPrepared ends an attempt that has no handle: the user is asked, the call waits as its service asks, or it failed.
func notPrepared(ctx context.Context, ex *unit.Execution, a *run.Action, err error) error {
	if tool.AsksFirst(err) && a.Decision == "" {
		return askAfterAll(ctx, ex, a, err)
	}
	if wait, waits := nextCall(ex, a, err); waits {
		return postponeCall(ctx, ex, a, wait, "", err)
	}
	return recordOutcome(ctx, ex, a.ID, failed(err))
}

// claim claims the run in order to carry out the call. It returns false if another process has started the call in the
// meantime. This process has then taken over that process's lapsed lease, and must settle the effect instead of making
// the call.
func claim(ctx context.Context, ex *unit.Execution, id string) (claimed bool, err error) {
	if err := ex.Claim(ctx, timeoutOf(ex, id)); err != nil {
		return false, err
	}
	st, next := ex.Next()
	return st == run.StepExecute && next.ID == id, nil
}

// CallTool calls the tool until its outcome is known or cannot be known here, and records the outcome.
func CallTool(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string) error {
	started := unit.CallOf(ex.State.Action(id))
	ex.Notify(unit.Update{Started: &started})
	acting, beat := holdCall(ctx, ex, t, timeoutOf(ex, id))
	defer beat.Release()
	acting, span := ex.TraceTool(acting, ex.Run, ex.State.Action(id))
	record := carryOut(acting, ex, beat, t, id)
	lapsed := beat.Lapsed()
	beat.Release()
	forgetPlace(ex, t)
	err := record(ctx)
	removeLate(ctx, ex, t, lapsed)
	span.EndTool(ex.State.Action(id), err)
	return err
}

// removeLate removes the things that a call has created after the end of its run. This process had lost the run, and
// the process that ended the run has removed only the earlier things. A process whose lease has lapsed may not know of
// the end, if it has recorded nothing.
func removeLate(ctx context.Context, ex *unit.Execution, t *tool.Tool, lapsed bool) {
	if !t.Disposes || ex.State.Cleaned == nil && !lapsed {
		return
	}
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	var err error
	if ex.State.Cleaned == nil {
		err = ex.Load(ctx)
	}
	if err == nil && ex.State.Cleaned != nil {
		_, err = t.Dispose(ctx, ex.Run.ToolCall("", nil, tool.Place{}))
	}
	if err != nil {
		ex.Log.ErrorContext(ctx, "things that a run created may be left behind", "counter", "clean_up_given_up",
			"runId", ex.ID, "error", fault.As(err))
	}
}

// pin makes the store notice, from now on, if an older copy of it is put back: that copy would not know of the intent.
func pin(ctx context.Context, ex *unit.Execution, t *tool.Tool) error {
	p, ok := ex.Store.(store.Pinner)
	if !ok || !t.SideEffect {
		return nil
	}
	if err := p.Pin(ctx); err != nil {
		return unit.StoreError(err)
	}
	return nil
}

// carryOut calls the tool and returns a function that records the outcome. If the call may still be in progress, that
// function records nothing, and a later step settles the call.
func carryOut(ctx context.Context, ex *unit.Execution, beat *unit.Heartbeat, t *tool.Tool,
	id string) (record func(context.Context) error) {
	a := ex.State.Action(id)
	call := toolCall(ex, a, a.Started.Handle)
	out := outputOf(ctx, ex, t, id)
	defer out.Close()
	underWay := a.Started.Attempt > 1 // an earlier attempt may still be in progress
	nothing := func(context.Context) error { return nil }
	if err := pin(ctx, ex, t); err != nil {
		return func(context.Context) error { return err } // the intent is settled later, as one that was cut off
	}
	for try := 1; ; try++ {
		if beat.Lapsed() { // another process may own the call now, and settles it
			noteUnmade(ex, a, try)
			return nothing
		}
		out.give(&call)
		files := attachedTo(ex, a)
		call.Attach = files.add
		result, err := t.Execute(readFor(ctx, ex, t, try), call)
		ex.LogPanic(ctx, id, err)
		after, again := tool.LaterAfter(err)
		switch {
		case again && !t.SideEffect:
			return func(ctx context.Context) error { return postpone(ctx, ex, id, after, run.WaitsForResult) }
		case err == nil:
			done := Succeeded(result)
			done.Attached = files.all()
			return func(ctx context.Context) error { return recordOutcome(ctx, ex, id, done) }
		case t.Limited() && tool.IsAmbiguous(err):
			ex.Log.InfoContext(ctx, "a call continues, or may continue, without its process", "runId", ex.ID,
				"actionId", id, "error", err)
			return nothing
		case t.SideEffect && tool.IsAmbiguous(err):
			underWay = underWay || tool.IsUnanswered(err)
			ex.Log.WarnContext(ctx, "the outcome of an effect is not clear", "runId", ex.ID, "actionId", id, "error",
				err)
			found, known := reconcile(ctx, ex, t, call, out)
			if !known {
				return func(ctx context.Context) error {
					return markUnknown(ctx, ex, id, found.Reason, err)
				}
			}
			if found.Verdict != tool.NotDone {
				return func(ctx context.Context) error { return recordFound(ctx, ex, id, found) }
			}
		case !tool.IsTransient(err):
			return func(ctx context.Context) error { return recordFailure(ctx, ex, t, id, err, underWay) }
		}
		if wait, waits := nextCall(ex, a, err); waits && !underWay {
			return func(ctx context.Context) error { return postponeCall(ctx, ex, a, wait, "", err) }
		}
		if try == maxCallTries || beat.Ended() || backOff(ctx, ex, try, err) != nil {
			return func(ctx context.Context) error { return recordFailure(ctx, ex, t, id, err, underWay) }
		}
	}
}

// noteUnmade notes that the process does not make the call of its own intent, unless a try or an attempt has made it.
func noteUnmade(ex *unit.Execution, a *run.Action, try int) {
	if try == 1 && a.Started.Attempt == 1 {
		ex.Unmade = a.Started
	}
}
