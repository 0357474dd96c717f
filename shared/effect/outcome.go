package effect

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// recordFailure records that the call had no effect. With an earlier attempt that may still be under way, the failure
// says nothing about that one: its process may only have been stopped, its request may only be late.
func recordFailure(ctx context.Context, ex *journal.Execution, t *tool.Tool, id string, err error,
	underWay bool) error {
	if !t.SideEffect && journal.Left(ex) {
		return nil // the call may be what was cut short, and whoever goes on makes it again
	}
	if underWay {
		return abandonRetry(ctx, ex, t, id, err)
	}
	return recordOutcome(ctx, ex, id, failedWithoutEffect(err))
}

// Succeeded returns the outcome of a call that was done.
func Succeeded(result []byte) run.Finished {
	f := run.Finished{Status: run.ActionCompleted, Execution: run.Succeeded}
	setResult(&f, result)
	return f
}

// setResult sets the result, or the beginning of its text where it is longer than maxOutput: of a string that is its
// own, unless nearly all of it is escaped.
func setResult(f *run.Finished, result json.RawMessage) {
	if len(result) <= maxOutput {
		f.Result = result
		return
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		f.Result = strictjson.Text(clip.Text(text, maxOutput))
	}
	if text == "" || len(f.Result) > 2*maxOutput {
		f.Result = strictjson.Text(clip.Text(string(result), maxOutput))
	}
	f.Truncated = true
}

// failedWithoutEffect returns the outcome of a call that had no effect, with the partial result of the error if it has
// one.
func failedWithoutEffect(err error) run.Finished {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.Tool, "failed",
			"The service could not do this. Nothing was sent or changed.").Because(err)
	}
	out := run.Finished{Status: run.ActionFailed, Execution: run.FailedKnown, Error: run.ErrorInfoOf(f), Err: err}
	setResult(&out, tool.PartialResult(err))
	return out
}

// recordOutcome records what became of a call. It is the one commit that must not be lost, be it that the function's
// time is up or that the store is down for a moment.
func recordOutcome(ctx context.Context, ex *journal.Execution, id string, f run.Finished) error {
	ctx, cancel := journal.Detached(ctx)
	defer cancel()
	ex.MustCommit = true
	defer func() { ex.MustCommit = false }()
	if f.Error != nil {
		ex.Log.WarnContext(ctx, "an action failed", "runId", ex.ID, "actionId", id, "class", f.Error.Class, "code",
			f.Error.Code)
	}
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		a := tx.State.Action(id)
		if !ownsOutcome(tx, a) {
			return nil
		}
		if f.Status == run.ActionFailed && a.Status != run.ActionExecuting {
			f.Execution = run.NotStarted
		}
		if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: &f}); err != nil {
			return err
		}
		if a.SideEffect {
			tx.AddAudit(audit.Outcome, a, func(e *audit.Entry) { journal.SetErrorInfo(e, f.Error) })
		}
		return nil
	})
}

// ownsOutcome reports whether this execution is the one to record the action's outcome: it wrote the newest intent, or
// settles it under its lease, or holds the run while there is no intent.
func ownsOutcome(tx *journal.Tx, a *run.Action) bool {
	if a.Terminal() || a.Waiting() || tx.Run.Lease.Held(tx.Ex.Owner, tx.Now) {
		return false
	}
	return a.Status != run.ActionExecuting || a.Started.Owner == tx.Ex.Owner || tx.Run.Lease.Owner == tx.Ex.Owner
}

// markUnknown records that the outcome of a call is unknown, with what it returned before its error if it did, and asks
// its user for a review. The error is the tool's, or nil.
func markUnknown(ctx context.Context, ex *journal.Execution, id, reason string, err error) error {
	ctx, cancel := journal.Detached(ctx)
	defer cancel()
	ex.Log.ErrorContext(ctx, "an outcome is unknown and waits for its user", "runId", ex.ID, "actionId", id)
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		a := tx.State.Action(id)
		if !ownsOutcome(tx, a) {
			return nil
		}
		return RecordUnknown(tx, a, reason, err)
	})
}

// RecordUnknown adds to a transition that the outcome of a call is unknown, and asks its user for a review. The cause
// is the tool's error, or nil.
func RecordUnknown(tx *journal.Tx, a *run.Action, reason string, cause error) error {
	p := run.ErrorInfoOf(fault.New(fault.Tool, fault.CodeUnknownOutcome,
		"It is not known whether this was done. %s", reason))
	f := &run.Finished{Status: run.ActionFailed, Execution: run.UnknownState, Error: p, Err: cause}
	setResult(f, tool.PartialResult(cause))
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	tx.AddAudit(audit.Outcome, a, func(e *audit.Entry) { journal.SetErrorInfo(e, p) })
	return approval.Request(tx, a, run.KindReview, p.Message)
}

// GiveUp records the outcome of a call that was started too often: unknown for an effect, failed for anything else.
func GiveUp(ctx context.Context, ex *journal.Execution, a *run.Action) error {
	if a.Status == run.ActionExecuting && a.SideEffect {
		return markUnknown(ctx, ex, a.ID, run.ErrAttempts.Message, nil)
	}
	return recordOutcome(ctx, ex, a.ID, failedWithoutEffect(run.ErrAttempts))
}

// maxOutput is how many bytes of a tool's result are kept.
const maxOutput = 64 << 10

// abandonRetry records the outcome of a call that had not happened when it was checked and is not tried again.
func abandonRetry(ctx context.Context, ex *journal.Execution, t *tool.Tool, id string, why error) error {
	if !t.SideEffect {
		return recordOutcome(ctx, ex, id, failedWithoutEffect(why))
	}
	return markUnknown(ctx, ex, id, startedElsewhere+" "+failedWithoutEffect(why).Error.Message, why)
}

// startedElsewhere is why such a call is left to its user.
const startedElsewhere = "It had not been done when this was checked, but an earlier attempt may still be under way."
