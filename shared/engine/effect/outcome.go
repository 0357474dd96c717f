package effect

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Succeeded returns the outcome of a call that was done. The result is cut to 64 KiB.
func Succeeded(result []byte) run.Finished {
	f := run.Finished{Status: run.ActionCompleted, Execution: run.Succeeded}
	setResult(&f, result)
	return f
}

// setResult sets the result, cut to maxOutput bytes.
func setResult(f *run.Finished, result json.RawMessage) {
	f.Result = result
	cutTo(f, maxOutput)
}

// cutTo cuts the result to keep bytes.
func cutTo(f *run.Finished, keep int) {
	if len(f.Result) > keep {
		f.Result, f.Truncated = clip.JSON(f.Result, keep), true
	}
}

// failed returns the outcome of a call that had no effect or ran without success, with the partial result in err, if
// any.
func failed(err error) run.Finished {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.New(fault.Tool, "failed",
			"The service could not do this. Nothing was sent or changed.").Because(err)
	}
	out := run.Finished{Status: run.ActionFailed, Execution: run.FailedKnown, Ran: tool.HasRan(err),
		Error: run.ErrorInfoOf(f), Err: err}
	setResult(&out, tool.PartialResult(err))
	return out
}

// recordOutcome records the outcome of a call. This commit must not be lost, so it ignores the end of the function's
// time and waits while the store is down for a moment.
func recordOutcome(ctx context.Context, ex *unit.Execution, id string, f run.Finished) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	ex.MustCommit = true
	defer func() { ex.MustCommit = false }()
	if f.Error != nil {
		ex.Log.WarnContext(ctx, "an action failed", "runId", ex.ID, "actionId", id, "class", f.Error.Class, "code",
			f.Error.Code)
	}
	files, err := KeepFiles(ctx, ex, f.Attached)
	if err != nil { // the outcome must not wait for them
		ex.Log.WarnContext(ctx, "the files of a result are not kept", "runId", ex.ID, "actionId", id, "error", err)
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a := tx.State.Action(id)
		if !ownsOutcome(tx, a) {
			return nil
		}
		if f.Status == run.ActionFailed && a.Status != run.ActionExecuting {
			f.Execution = run.NotStarted
		}
		if err := files.addTo(tx, &f); err != nil {
			return err
		}
		if !a.SideEffect {
			cutTo(&f, run.KeepOf(tx.State, len(f.Result)))
		}
		if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: &f}); err != nil {
			return err
		}
		if a.SideEffect {
			addOutcome(tx, a, f.Error)
		}
		return nil
	})
}

// addTo stores the files with the run, and describes them in the outcome of their call. Files that the run cannot have,
// such as an upload that its user has just deleted, do not keep the outcome from being recorded.
func (k KeptFiles) addTo(tx *unit.Tx, f *run.Finished) error {
	if len(k.files) == 0 {
		return nil
	}
	added, err := k.Store(tx)
	var refused *fault.Error
	if errors.As(err, &refused) && refused.Class == fault.Validation {
		tx.Ex.Log.Warn("the files of a result are not kept", "runId", tx.Run.ID, "error", err)
		return nil
	}
	f.Files, f.FilesOf = added, tx.Run.ID
	return err
}

// postpone records that the call begins again after a while, and why. It gives up the run: the sweep finds the run when
// it is due.
func postpone(ctx context.Context, ex *unit.Execution, id string, after time.Duration,
	why run.WaitsFor) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if !ownsOutcome(tx, tx.State.Action(id)) {
			return nil
		}
		until := run.Postponed{Until: tx.Now.Add(max(after, time.Second)), For: why}
		return tx.AddEvent(run.Event{Type: run.ActionPostponed, ActionID: id, Postponed: &until})
	})
}

// addOutcome adds the audit entry of the action's outcome, with the facts that its tool derives from the result.
func addOutcome(tx *unit.Tx, a *run.Action, p *run.ErrorInfo) {
	tx.AddAudit(audit.Outcome, a, func(e *audit.Entry) {
		unit.SetErrorInfo(e, p)
		if t := tx.Ex.Toolbox.Tools[a.Tool]; t != nil {
			e.Facts = tool.Facts(e.Facts).With(t.Note(a.Args, a.Result))
		}
		if a.Ran {
			e.Facts = tool.Facts(e.Facts).With(tool.Facts{"ran": "yes"})
		}
	})
}

// ownsOutcome reports whether this execution may record the action's outcome: it wrote the newest intent, settles the
// action under its own lease, or holds the run while there is no intent.
func ownsOutcome(tx *unit.Tx, a *run.Action) bool {
	if a.Terminal() || a.Waiting() || tx.Run.Lease.Held(tx.Ex.Owner, tx.Now) {
		return false
	}
	return a.Status != run.ActionExecuting || a.Started.Owner == tx.Ex.Owner || tx.Run.Lease.Owner == tx.Ex.Owner
}

// markUnknown records that the outcome of a call is unknown, with the result before its error if any, and requests a
// review. err is the tool's error, or nil.
func markUnknown(ctx context.Context, ex *unit.Execution, id, reason string, err error) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	ex.Log.ErrorContext(ctx, "an outcome is unknown and waits for its user", "runId", ex.ID, "actionId", id)
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a := tx.State.Action(id)
		if !ownsOutcome(tx, a) {
			return nil
		}
		return RecordUnknown(tx, a, reason, err)
	})
}

// RecordUnknown records in a transition that the outcome of a call is unknown, and requests a review. cause is the
// tool's error, or nil.
func RecordUnknown(tx *unit.Tx, a *run.Action, reason string, cause error) error {
	p := run.ErrorInfoOf(fault.New(fault.Tool, fault.CodeUnknownOutcome,
		"It is not known whether this was done. %s", reason))
	f := &run.Finished{Status: run.ActionFailed, Execution: run.UnknownState, Error: p, Err: cause}
	setResult(f, tool.PartialResult(cause))
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	addOutcome(tx, a, p)
	return approval.Request(tx, a, run.KindReview, p.Message)
}

// maxOutput is the maximum size of a stored tool result, in bytes.
const maxOutput = 64 << 10

// recordFound records the outcome that the tool has reported.
func recordFound(ctx context.Context, ex *unit.Execution, id string, out tool.Outcome) error {
	switch {
	case out.Verdict == tool.Never:
		return recordOutcome(ctx, ex, id, failed(
			fault.New(fault.Policy, run.CodeCancelled, "This ended before it started, so it was not done.")))
	case out.Verdict == tool.Running: // a tool without a limit guarantees no end
		return markUnknown(ctx, ex, id, "It is still under way.", nil)
	case out.Err != nil:
		return recordOutcome(ctx, ex, id, failed(out.Err))
	}
	return recordOutcome(ctx, ex, id, Succeeded(out.Result))
}
