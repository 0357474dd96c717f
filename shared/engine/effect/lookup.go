package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// LookUp asks the provider whether a call was done after the copy was made from which the store was restored. Such a
// call is recorded as done, and not repeated. A call that was permitted in the copy becomes a review if the provider
// cannot tell. Any other call stays as it is, and its user decides about it.
func LookUp(ctx context.Context, ex *unit.Execution, id string) error {
	if err := ex.Claim(ctx, timeoutOf(ex, id)); err != nil {
		return err
	}
	if a := ex.Run.ToLookUp(ex.State); a == nil || a.ID != id {
		return nil
	}
	out, err := lookUp(ctx, ex, ex.State.Action(id))
	if err != nil {
		return err
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a := tx.Run.ToLookUp(tx.State)
		if a == nil || a.ID != id || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		tx.Run, tx.Changed = tx.Run.WithLookedUp(a), true
		return noteFound(tx, a, out)
	})
}

// lookUp asks the tool about the call. Verdict is Unknown if the tool cannot tell, and empty for a call without an
// effect outside of the run, which its user decides about without a review.
func lookUp(ctx context.Context, ex *unit.Execution, a *run.Action) (tool.Outcome, error) {
	t := ex.ToolOf(a.Tool, a.UserInitiated)
	switch {
	case t == nil:
		return tool.Outcome{Verdict: tool.Unknown, Reason: "The tool is no longer available."}, nil
	case t.Waits() || t.Contained:
		return tool.Outcome{}, nil
	}
	if err := ex.ReadLinked(ctx, t, ex.Progressed); err != nil {
		return tool.Outcome{}, err
	}
	out := asked(ctx, ex, toolCall(ex, a, ""), t.LookUp)
	if out.Verdict == tool.Running {
		out = tool.Outcome{Verdict: tool.Unknown, Reason: "It is still under way."}
	}
	return out, nil
}

// noteFound records the provider's answer about the call.
func noteFound(tx *unit.Tx, a *run.Action, out tool.Outcome) error {
	switch {
	case out.Verdict == tool.Done && tx.Run.Copied(a):
		return recordLost(tx, a, out)
	case out.Verdict == tool.Done: // it is the call of a lost turn, and this one need not be the same
		return reviewLost(tx, a, "Something was done for this request after the backup. Please look at it.")
	case out.Verdict == tool.Unknown && (tx.Run.Permitted(a) || tx.Ending() != nil):
		return reviewLost(tx, a, out.Reason)
	case out.Verdict == tool.NotDone && tx.Run.Permitted(a) && a.Decision != "": // even if it can still be undone
		_, _, err := recheckPolicy(tx, a, tx.ToolIn(a.Tool, a.UserInitiated))
		return err
	case out.Verdict == tool.Unknown && a.Waiting():
		ap, err := tx.Approval(a.ApprovalID)
		if err == nil {
			ap.Reason = unit.PutBack + " " + out.Reason
		}
		return err
	}
	return nil
}

// foundFact marks the audit entries about a call whose own record was lost.
var foundFact = tool.Facts{"found": "after_restore"}

// beginLost records the intent that was lost with the newer state of the store, and closes the call's card.
func beginLost(tx *unit.Tx, a *run.Action) error {
	if a.Waiting() {
		if err := approval.Close(tx, a.ApprovalID, run.ApprovalCancelled, ""); err != nil {
			return err
		}
	}
	started := run.Started{Owner: tx.Ex.Owner, Attempt: 1, Found: true}
	if err := tx.AddEvent(run.Event{Type: run.ActionStarted, ActionID: a.ID, Started: &started}); err != nil {
		return err
	}
	tx.AddAudit(audit.Intent, a, func(e *audit.Entry) {
		e.Decision = decidedBy(a)
		e.Facts = tool.Facts(e.Facts).With(foundFact)
	})
	return nil
}

// recordLost records that the call was done after the copy of the store was made.
func recordLost(tx *unit.Tx, a *run.Action, out tool.Outcome) error {
	if err := beginLost(tx, a); err != nil {
		return err
	}
	f := Succeeded(out.Result)
	if out.Err != nil {
		f = failed(out.Err)
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: &f}); err != nil {
		return err
	}
	addOutcome(tx, a, f.Error)
	return nil
}

// reviewLost records that the provider cannot tell whether the call was done after the copy of the store was made.
func reviewLost(tx *unit.Tx, a *run.Action, reason string) error {
	if err := beginLost(tx, a); err != nil {
		return err
	}
	return RecordUnknown(tx, a, "The server's data was restored from a backup. "+reason, nil)
}
