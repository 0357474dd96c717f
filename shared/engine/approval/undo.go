package approval

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// MaxUndoWindow is the longest undo window that a user can choose.
const MaxUndoWindow = time.Minute

// heldUntil returns the end of the undo window, or zero if the decision takes effect at once because it approves no
// effect.
func heldUntil(tx *unit.Tx, ap *run.Approval, t *tool.Tool, r Resolution) time.Time {
	yes := r.Decision == run.ApproveOnce || r.Decision == run.ApproveEdited || storesEntries(r.Decision)
	held := min(max(r.UndoWindow, tx.Ex.UndoWindow), MaxUndoWindow)
	if !yes || held <= 0 || ap.Kind != run.KindApproval || t == nil || !t.SideEffect {
		return time.Time{}
	}
	return tx.Now.Add(held)
}

// storesEntries reports whether the decision also allows later calls.
func storesEntries(d run.Decision) bool {
	return d == run.ApproveAlways || d == run.ApproveAlwaysCommand
}

// startUndoWindow adds an approval in its undo window to the user's document.
func startUndoWindow(tx *unit.Tx, ap *run.Approval, until time.Time) error {
	if until.IsZero() {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.AddUndoWindow(run.UndoWindow{ApprovalID: ap.ID, Until: until}, tx.Now) })
}

// Release removes an action's undo window from the user's document, if the action does not run.
func Release(tx *unit.Tx, a *run.Action) error {
	if !a.Held(tx.Now) {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) {
		u.EndUndoWindow(a.ApprovalID, tx.Now)
		u.ForgetAllowed(a.ID)
	})
}

// undoable checks that the user may revoke the approval now.
func undoable(c *candidate) error {
	switch {
	case c.ap.Decision == run.Undo:
		return ErrSameDecision
	case c.ap.Status == run.ApprovalOpen:
		return fault.New(fault.Policy, fault.CodeNotApplicable, "This was not approved, so there is nothing to undo.")
	case c.a == nil || c.a.ApprovalID != c.ap.ID || !c.a.Held(c.tx.Now):
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "It is too late to undo this.")
	}
	return nil
}

// undo revokes an approval in its undo window together with the entries that it added to the allowlist: the call is
// rejected. The run then names the earlier cards that the approval had rejected, so that they are reopened. The count
// of open approvals was reduced when the user approved.
func undo(tx *unit.Tx, ap *run.Approval, a *run.Action, r Resolution) error {
	if err := Release(tx, a); err != nil {
		return err
	}
	if storesEntries(ap.Decision) {
		if err := tx.UpdateUser(func(u *run.User) { u.TakeBack(ap.ID, tx.Now) }); err != nil {
			return err
		}
	}
	tx.Run.Reopens = slices.Clone(tx.Run.Reopens)
	for _, old := range slices.Backward(ap.InsteadOf) { // in the order in which they were requested
		tx.Run.Reopens = append(tx.Run.Reopens, run.Replaced{ApprovalID: old.ApprovalID, By: ap.ID})
	}
	ap.Status, ap.Decision, ap.DecidedAt = run.ApprovalRejected, run.Undo, tx.Now
	err := tx.AddEvent(run.Event{Type: run.ActionDecided, ActionID: a.ID, Decided: &run.Decided{ApprovalID: ap.ID,
		Decision: run.Undo, By: r.UID, Comment: clip.Text(r.Comment, maxKeptComment), ArgsHash: ap.ArgsHash}})
	tx.AddAudit(audit.Decided, a, func(e *audit.Entry) { e.Decision = string(run.Undo) })
	return err
}
