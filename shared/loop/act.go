package loop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// maxCallTries is how often one execution calls a provider for something that provably did not happen.
const maxCallTries = 3

// executeCall carries out a call that is allowed. For a side effect the order is: handle, intent (durable), effect,
// outcome (durable). After a death between any two of these, settle takes over.
func (ex *execution) executeCall(ctx context.Context, id string) error {
	a := ex.state.Action(id)
	t := ex.toolOf(ex.run, a.Tool, a.UserInitiated)
	if t == nil {
		return ex.recordOutcome(ctx, id,
			failedWithoutEffect(fault.New(fault.Tool, "no_such_tool", "This tool is no longer available.")))
	}
	if err := ex.checkUnchanged(ctx, a, t); err != nil {
		ex.logPanic(ctx, id, err)
		return ex.recordOutcome(ctx, id, failedWithoutEffect(err))
	}
	if t.Waits() {
		return ex.leaveToClient(ctx, id, t)
	}
	handle := ""
	if t.Prepares() {
		if mine, err := ex.claimCall(ctx, id); err != nil || !mine {
			return err
		}
		var err error
		if handle, err = ex.prepare(ctx, t, a); err != nil {
			return ex.recordOutcome(ctx, id, failedWithoutEffect(err))
		}
	}
	if !t.SideEffect && !a.RequiresApproval {
		if mine, err := ex.claimCall(ctx, id); err != nil || !mine {
			return err
		}
		return ex.callTool(ctx, t, id)
	}
	ok, err := ex.commitIntent(ctx, t, id, run.Started{Owner: ex.owner, Attempt: 1, Handle: handle})
	if err != nil || !ok {
		return err
	}
	return ex.callTool(ctx, t, id)
}

// claimCall claims the run to carry out the call. It reports false where another process has started the call
// meanwhile: with that process's lapsed lease this one has taken over an effect to settle, not a call to make.
func (ex *execution) claimCall(ctx context.Context, id string) (mine bool, err error) {
	if err := ex.claim(ctx, ex.timeoutOf(id)); err != nil {
		return false, err
	}
	st, next := ex.next(ex.state, ex.run, ex.now())
	return st == stepExecute && next.ID == id, nil
}

// timeoutOf returns how long the call may take.
func (ex *execution) timeoutOf(id string) time.Duration {
	return ex.limits().OfTool(ex.Tools[ex.state.Action(id).Tool])
}

// checkUnchanged checks what may have changed since the call was validated: the stored arguments, and the place where
// it would act.
func (ex *execution) checkUnchanged(ctx context.Context, a *run.Action, t *tool.Tool) error {
	if run.ArgsHash(ex.run.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
		return fault.New(fault.Policy, fault.CodeIntegrity,
			"The stored action does not match what was approved, so it was not done.")
	}
	in, err := t.Place(ctx, ex.run.UID)
	if err != nil {
		return err
	}
	return tool.SamePlace(a.Place, in)
}

func (ex *execution) toolCall(a *run.Action, handle string) tool.Call {
	return tool.Call{UID: ex.run.UID, Origin: ex.run.Origin, Agent: ex.run.AgentName(), ThreadID: ex.run.ThreadID,
		RunID: ex.run.ID, ActionID: a.ID, Args: a.Args, Handle: handle, Place: a.Place}
}

// prepare returns the handle that the tool prepares. Whatever goes wrong, no effect has taken place.
func (ex *execution) prepare(ctx context.Context, t *tool.Tool, a *run.Action) (handle string, err error) {
	ctx, cancel := withStepTimeout(ctx, ex.limits().OfTool(t))
	defer cancel()
	for try := 1; ; try++ {
		handle, err = t.Prepare(ctx, ex.toolCall(a, ""))
		ex.logPanic(ctx, a.ID, err)
		if err == nil || !tool.IsTransient(err) || try == maxCallTries {
			return handle, err
		}
		if err := ex.backOff(ctx, try); err != nil {
			return "", err
		}
	}
}

// backOff waits before the next try: 0 to 1, 2, 4 seconds.
func (ex *execution) backOff(ctx context.Context, try int) error {
	return ex.Sleep(ctx, ex.jitter(time.Second<<(try-1)))
}

// callTool calls the tool until its outcome is known, or is known to be unknowable here, and records it.
func (ex *execution) callTool(ctx context.Context, t *tool.Tool, id string) error {
	a := ex.state.Action(id)
	call := ex.toolCall(a, a.Started.Handle)
	acting, cancel := withStepTimeout(ctx, ex.limits().OfTool(t))
	defer cancel()
	underWay := a.Started.Attempt > 1 // an earlier attempt may be
	for try := 1; ; try++ {
		result, err := t.Execute(acting, call)
		ex.logPanic(ctx, id, err)
		switch {
		case err == nil:
			return ex.recordOutcome(ctx, id, succeeded(result))
		case t.SideEffect && tool.IsAmbiguous(err):
			underWay = underWay || tool.IsUnanswered(err)
			ex.Log.WarnContext(ctx, "the outcome of an effect is not clear", "runId", ex.id, "actionId", id, "error",
				err)
			out, known := ex.reconcile(acting, t, call)
			if !known {
				return ex.markUnknown(ctx, id, out.Reason, tool.PartialResult(err))
			}
			if out.Verdict == tool.Done {
				return ex.recordOutcome(ctx, id, succeeded(out.Result))
			}
		case !tool.IsTransient(err):
			return ex.recordFailure(ctx, t, id, err, underWay)
		}
		if try == maxCallTries || ex.backOff(acting, try) != nil {
			return ex.recordFailure(ctx, t, id, err, underWay)
		}
	}
}

// logPanic logs a panic of a tool's function: its user sees a failure like any other.
func (l *Loop) logPanic(ctx context.Context, id string, err error) {
	if tool.IsPanic(err) {
		l.Log.ErrorContext(ctx, "a tool panicked", "counter", "tool_panic", "actionId", id, "error", err)
	}
}

// recordFailure records that the call had no effect. With an earlier attempt that may still be under way, the failure
// says nothing about that one: its process may only have been stopped, its request may only be late.
func (ex *execution) recordFailure(ctx context.Context, t *tool.Tool, id string, err error, underWay bool) error {
	if underWay {
		return ex.abandonRetry(ctx, t, id, err)
	}
	return ex.recordOutcome(ctx, id, failedWithoutEffect(err))
}

// reconcile asks the tool what became of a call, up to maxCallTries times; known is false where the tool cannot tell.
func (ex *execution) reconcile(ctx context.Context, t *tool.Tool, call tool.Call) (out tool.Outcome, known bool) {
	ctx, cancel := detached(ctx)
	defer cancel()
	var err error
	for try := 1; try <= maxCallTries; try++ {
		out, err = t.Reconcile(ctx, call)
		if err == nil {
			return out, out.Verdict != tool.Unknown
		}
		ex.Log.WarnContext(ctx, "what became of an effect could not be asked", "runId", ex.id, "actionId",
			call.ActionID, "error", err)
		if try < maxCallTries && ex.backOff(ctx, try) != nil {
			break
		}
	}
	return tool.Outcome{Verdict: tool.Unknown, Reason: "The service does not say what happened."},
		false
}

// settle finds out what became of an effect that an earlier execution started.
func (ex *execution) settle(ctx context.Context, id string) error {
	if err := ex.claim(ctx, ex.timeoutOf(id)); err != nil {
		return err
	}
	a := ex.state.Action(id)
	if a.Status != run.ActionExecuting {
		return nil
	}
	t := ex.Tools[a.Tool]
	if t == nil || t.Waits() {
		return ex.markUnknown(ctx, id, "The tool is no longer available.", nil)
	}
	out, known := tool.Outcome{Verdict: tool.NotDone}, true
	if t.SideEffect {
		out, known = ex.reconcile(ctx, t, ex.toolCall(a, a.Started.Handle))
	}
	switch {
	case !known:
		return ex.markUnknown(ctx, id, out.Reason, nil)
	case out.Verdict == tool.Done:
		return ex.recordOutcome(ctx, id, succeeded(out.Result))
	case ex.ending(ex.state, ex.run, ex.now()) != nil:
		return ex.abandonRetry(ctx, t, id,
			fault.New(fault.Policy, codeCancelled, "The run ended before it was tried again."))
	case a.Started.Attempt >= maxAttempts:
		return ex.giveUpCall(ctx, a)
	}
	return ex.retry(ctx, t, a)
}

// abandonRetry records the outcome of a call that had not happened when it was checked and is not tried again.
func (ex *execution) abandonRetry(ctx context.Context, t *tool.Tool, id string, why error) error {
	if !t.SideEffect {
		return ex.recordOutcome(ctx, id, failedWithoutEffect(why))
	}
	return ex.markUnknown(ctx, id, startedElsewhere+" "+failedWithoutEffect(why).Error.Message, tool.PartialResult(why))
}

// startedElsewhere is why such a call is left to its user.
const startedElsewhere = "It had not been done when this was checked, but an earlier attempt may still be under way."

// retry takes over a call that provably had no effect. A permission that was withdrawn since the first attempt counts
// as withdrawn.
func (ex *execution) retry(ctx context.Context, t *tool.Tool, a *run.Action) error {
	if err := ex.checkUnchanged(ctx, a, t); err != nil {
		return ex.abandonRetry(ctx, t, a.ID, err)
	}
	started := run.Started{Owner: ex.owner, Attempt: a.Started.Attempt + 1, Handle: a.Started.Handle}
	ok, err := ex.commitIntent(ctx, t, a.ID, started)
	if err != nil || !ok {
		return err
	}
	return ex.callTool(ctx, t, a.ID)
}

func succeeded(result []byte) run.Finished {
	return run.Finished{Status: run.ActionCompleted, Execution: run.Succeeded, Result: boundedResult(result)}
}

// boundedResult returns the result, or the beginning of its text where it is longer than maxOutput.
func boundedResult(result json.RawMessage) json.RawMessage {
	if len(result) > maxOutput {
		return jsonString(clip.Text(string(result), maxOutput))
	}
	return result
}

// failedWithoutEffect returns the outcome of a call that had no effect, with the partial result of the error if it has
// one.
func failedWithoutEffect(err error) run.Finished {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.Tool, "failed",
			"The service could not do this. Nothing was sent or changed.").Because(err)
	}
	return run.Finished{Status: run.ActionFailed, Execution: run.FailedKnown, Error: run.ErrorInfoOf(f),
		Result: boundedResult(tool.PartialResult(err))}
}

// recordOutcome records what became of a call. It is the one commit that must not be lost, be it that the function's
// time is up or that the store is down for a moment.
func (ex *execution) recordOutcome(ctx context.Context, id string, f run.Finished) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	ex.mustCommit = true
	defer func() { ex.mustCommit = false }()
	if f.Error != nil {
		ex.Log.WarnContext(ctx, "an action failed", "runId", ex.id, "actionId", id, "class", f.Error.Class, "code",
			f.Error.Code)
	}
	return ex.transition(ctx, func(tx *tx) error {
		a := tx.state.Action(id)
		if !tx.ownsOutcome(a) {
			return nil
		}
		if f.Status == run.ActionFailed && a.Status != run.ActionExecuting {
			f.Execution = run.NotStarted
		}
		if err := tx.addEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: &f}); err != nil {
			return err
		}
		if a.SideEffect {
			tx.addAudit(audit.Outcome, a, func(e *audit.Entry) { setErrorInfo(e, f.Error) })
		}
		return nil
	})
}

// ownsOutcome reports whether this execution is the one to record the action's outcome: it wrote the newest intent, or
// settles it under its lease, or holds the run while there is no intent.
func (tx *tx) ownsOutcome(a *run.Action) bool {
	if a.Terminal() || a.Waiting() || tx.run.Lease.Held(tx.ex.owner, tx.now) {
		return false
	}
	return a.Status != run.ActionExecuting || a.Started.Owner == tx.ex.owner || tx.run.Lease.Owner == tx.ex.owner
}

func setErrorInfo(e *audit.Entry, p *run.ErrorInfo) {
	if p != nil {
		e.ErrorCode, e.Message = string(p.Class), string(p.Code)
	}
}

// markUnknown records that the outcome of a call is unknown, with what it returned before if it did, and asks its user
// for a review.
func (ex *execution) markUnknown(ctx context.Context, id, reason string, partial json.RawMessage) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	ex.Log.ErrorContext(ctx, "an outcome is unknown and waits for its user", "runId", ex.id, "actionId", id)
	return ex.transition(ctx, func(tx *tx) error {
		a := tx.state.Action(id)
		if !tx.ownsOutcome(a) {
			return nil
		}
		return tx.markUnknown(a, reason, partial)
	})
}

func (tx *tx) markUnknown(a *run.Action, reason string, partial json.RawMessage) error {
	p := run.ErrorInfoOf(fault.New(fault.Tool, fault.CodeUnknownOutcome,
		"It is not known whether this was done. %s", reason))
	f := &run.Finished{Status: run.ActionFailed, Execution: run.UnknownState, Error: p,
		Result: boundedResult(partial)}
	if err := tx.addEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	tx.addAudit(audit.Outcome, a, func(e *audit.Entry) { setErrorInfo(e, p) })
	return tx.requestApproval(a, run.KindReview, p.Message)
}
