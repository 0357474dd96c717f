package approval

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Resolution is a user's decision about a waiting call.
type Resolution struct {
	UID        string
	ApprovalID string
	Decision   run.Decision
	ArgsHash   string             // of the card that the user saw; optional
	EditedArgs json.RawMessage    // with approve_with_edits
	Comment    string             // for the model, with a rejection; required only with run.Refine
	Files      []attachment.File  // with run.Refine: files for the model; types checked by the caller
	Strict     bool               // with the confirmation of a plan: each change of the plan needs approval
	UndoWindow time.Duration      // up to MaxUndoWindow; the operator may have set a longer one
	Auth       decision.Auth      // how the user was authenticated
	Passkey    *passkey.Assertion // the passkey's confirmation; nil: none
	Rejects    []string           // with an approval: the earlier cards that are rejected in the same commit

	seen Seen // with run.StartNew: the present state, for the new card

	replacedBy string // with a rejection: the ID of the approval that replaces this one
}

// ErrSameDecision means that the same decision was recorded before.
var ErrSameDecision = errors.New("approval: the same decision was recorded before")

// ToolToPlace returns the current tool of the waiting call if the decision causes the call to run, or nil. The error
// means that the tool's server cannot be reached.
func ToolToPlace(ctx context.Context, ex *unit.Execution, r Resolution) (*tool.Tool, error) {
	var ap run.Approval
	if document.Decode(ex.Docs[document.ApprovalPath(r.ApprovalID)], &ap) != nil || ap.Status != run.ApprovalOpen ||
		!executes(r.Decision) {
		return nil, nil // Check returns the reason
	}
	ex.Toolbox.Refresh(ctx, ex.Run.Agent)
	if a := ex.State.Action(ap.ActionID); a != nil {
		if err := ex.Toolbox.Renew(ctx, a); err != nil {
			return nil, err
		}
	}
	return ex.Toolbox.Proposed(ex.Run, ex.State, ap.Tool), nil
}

// Look reads the present state for the card of a call that its user starts again. t is the result of [ToolToPlace].
func (r *Resolution) Look(ctx context.Context, ex *unit.Execution, t *tool.Tool) {
	var ap run.Approval
	if r.Decision != run.StartNew || t == nil ||
		document.Decode(ex.Docs[document.ApprovalPath(r.ApprovalID)], &ap) != nil {
		return
	}
	if a := ex.State.Action(ap.ActionID); a != nil {
		r.seen = Look(ex.Linked(ctx, t), ex, t, ex.Run.ToolCall(a.ID, a.Args, a.Place))
	}
}

// executes reports whether the decision causes the call to run.
func executes(d run.Decision) bool {
	return d != run.Reject && d != run.TakeBack && d != run.Undo && d != run.ConfirmDone && d != run.Refine
}

var statusAfter = map[run.Decision]run.ApprovalStatus{
	run.Reject: run.ApprovalRejected, run.TakeBack: run.ApprovalRejected, run.ApproveOnce: run.ApprovalApproved,
	run.ApproveAlways: run.ApprovalApproved, run.ApproveAlwaysCommand: run.ApprovalApproved,
	run.ApproveEdited: run.ApprovalApproved, run.ConfirmDone: run.ApprovalApproved,
	run.StartNew: run.ApprovalApproved, run.Refine: run.ApprovalReplaced,
}

// Record signs the decision, and adds it with its consequences and the audit entry.
func Record(ctx context.Context, tx *unit.Tx, ap *run.Approval, r Resolution, args json.RawMessage,
	in tool.Place) error {
	a := tx.State.Action(ap.ActionID)
	if r.Decision == run.Undo {
		return undo(tx, ap, a, r)
	}
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, ap.Tool)
	if r.Decision == run.ApproveEdited {
		ap.Args, ap.ArgsHash = args, run.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	}
	held := heldUntil(tx, ap, t, r)
	decided := &run.Decided{ApprovalID: ap.ID, Decision: r.Decision, By: r.UID, ArgsHash: ap.ArgsHash,
		HeldUntil: held, ReplacedBy: r.replacedBy}
	if r.Decision == run.ApproveEdited {
		decided.EditedArgs = args
	}
	entries, err := newEntries(tx, ap, t, args, r.Decision, held)
	if err != nil {
		return err
	}
	if err := prove(ctx, tx, ap, decided, r, args, entries); err != nil {
		return err
	}
	if err := alwaysAllow(tx, entries); err != nil {
		return err
	}
	if err := Close(tx, ap.ID, statusAfter[r.Decision], r.Decision); err != nil {
		return err
	}
	if err := noteYes(tx, ap, r.Decision); err != nil {
		return err
	}
	if decided.Files, err = tx.AddFiles(r.Files); err != nil {
		return err
	}
	if decided.Comment = r.Comment; r.Decision != run.Refine {
		decided.Comment = clip.Text(r.Comment, maxKeptComment)
	}
	if err := startUndoWindow(tx, ap, held); err != nil {
		return err
	}
	if r.Decision == run.ApproveEdited {
		verdict, err := Verdict(tx, t, a.ID, ap.Place, args)
		if err != nil {
			return err
		}
		decided.Ruled = run.RuledBy(verdict.CallPolicy)
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionDecided, ActionID: a.ID, Decided: decided}); err != nil {
		return err
	}
	addDecision(tx, ap, a, r)
	if r.Decision == run.StartNew {
		return restartCall(tx, a, t, in, r.seen)
	}
	// the user sets the deadline of a session
	if soon := tx.Now.Add(minTimeAfterApproval); tx.State.Plan == nil && a.Runnable() && tx.Run.Deadline.Before(soon) {
		tx.Run.Deadline = soon
	}
	return nil
}

// addDecision adds the decision to the audit log.
func addDecision(tx *unit.Tx, ap *run.Approval, a *run.Action, r Resolution) {
	kind := audit.Decided
	if ap.Kind == run.KindReview {
		kind = audit.Reviewed
	}
	tx.AddAudit(kind, a, func(e *audit.Entry) {
		if e.Decision = string(r.Decision); r.replacedBy != "" {
			e.Facts = tool.Facts(e.Facts).With(tool.Facts{"replacedBy": r.replacedBy})
		}
	})
}

// minTimeAfterApproval is the minimum time that a run has left after an approval. A call that is approved just before
// the deadline still runs.
const minTimeAfterApproval = time.Hour

// restartCall proposes the call again, with the place where it would act now, and requests approval. The outcome of the
// old call stays unknown.
func restartCall(tx *unit.Tx, old *run.Action, t *tool.Tool, in tool.Place, seen Seen) error {
	call := old.ProposedCall
	call.Place = in
	return ask(tx, call, t, seen, "You asked to try this again. It may already have been done; please check first.")
}

// AskAnew proposes another call, with the place where it acts now, and requests approval. The call replaces one that
// did not run because its card was out of date. The new card shows the state in seen.
func AskAnew(tx *unit.Tx, old *run.Action, t *tool.Tool, in tool.Place, args json.RawMessage, seen Seen,
	reason string) error {
	call := old.ProposedCall
	call.Args, call.Place = args, in
	return ask(tx, call, t, seen, reason)
}

// ask proposes the call as the next attempt, and requests approval with a card that shows the state in seen.
func ask(tx *unit.Tx, call run.ProposedCall, t *tool.Tool, seen Seen, reason string) error {
	call.Attempt++
	call.ArgsHash = run.ArgsHash(tx.Run.UID, t.Spec, call.Place, call.Args)
	call.OwnProof = nil
	call.RequiresApproval, call.UserInitiated = true, call.UserInitiated && call.AsksAlways()
	seen.on(&call, t)
	id := run.ActionID(tx.Run.ID, call.Turn, call.Index, call.Attempt)
	if err := tx.AddEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	return Request(tx, tx.State.Action(id), run.KindApproval, reason)
}
