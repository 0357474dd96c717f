package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// Resolution is what a user decides about a waiting call.
type Resolution struct {
	UID        string
	ApprovalID string
	Decision   run.Decision
	ArgsHash   string          // of the snapshot that the user saw; optional
	EditedArgs json.RawMessage // with approve_with_edits
	Comment    string          // given to the model with a rejection; optional
}

// Resolve records the decision about a waiting call, and runs nothing: whichever process gets the resume moves the run.
// The same decision again gets the same answer. Errors: AuthError not_found; PolicyError already_resolved, expired,
// stale_view, integrity, not_applicable, denied; ValidationError for edited arguments that do not fit. A PolicyError is
// recorded in the audit too, unless the store does not take it (see recordRefusal).
func (l *Loop) Resolve(ctx context.Context, r Resolution) (*run.View, error) {
	runID, ok := run.RunOfApproval(r.ApprovalID)
	if !ok {
		return nil, fault.NotFound()
	}
	ex := l.newExecution(runID, nil)
	path := document.ApprovalPath(r.ApprovalID)
	soon, cancel := withAnswerTimeout(ctx)
	defer cancel()
	if err := ex.loadOwned(soon, r.UID, path, document.UserPath(r.UID)); err != nil {
		return nil, err
	}
	if !ex.docs[path].Exists() {
		return nil, fault.NotFound()
	}
	at := ex.placementOfApproval(soon, r)
	decided := false // stays true when the commit's answer was lost, and the next read finds the decision there
	var refused error
	err := ex.transition(soon, func(tx *tx) error {
		ap, err := tx.approval(r.ApprovalID)
		if err != nil {
			return err
		}
		tx.keepLease, refused = true, nil
		args, err := ex.checkDecision(tx, ap, r, at)
		switch {
		case errors.Is(err, errSameDecision):
			return nil
		case fault.As(err).Class == fault.Policy:
			refused = err
			return tx.recordRefusal(ap, r, err)
		case err != nil:
			return err
		}
		decided = true
		return tx.resolve(ap, r, args, at.Place)
	})
	if refused != nil { // whether or not the audit has it
		if err != nil {
			ex.Log.WarnContext(ctx, "a refused decision is not in the audit", "runId", ex.id, "approvalId",
				r.ApprovalID, "error", err)
		}
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if decided && ex.state.End == nil {
		ex.publish(ctx)
	}
	return ex.currentView(ctx)
}

// errSameDecision means that the same decision was recorded before.
var errSameDecision = errors.New("loop: the same decision was recorded before")

// placementOfApproval returns where the waiting call would act, for a decision that would have it carried out.
func (ex *execution) placementOfApproval(ctx context.Context, r Resolution) (at placement) {
	var ap run.Approval
	if document.Decode(ex.docs[document.ApprovalPath(r.ApprovalID)], &ap) != nil || ap.Status != run.ApprovalOpen ||
		!executes(r.Decision) {
		return at // checkDecision says what is wrong
	}
	if t := ex.Tools[ap.Tool]; t != nil {
		at.Place, at.err = t.Place(ctx, r.UID)
	}
	return at
}

// executes reports whether the decision causes the call to be carried out.
func executes(d run.Decision) bool { return d != run.Reject && d != run.ConfirmDone }

// checkDecision checks a decision against the approval's present state, and returns the arguments that it approves.
func (ex *execution) checkDecision(tx *tx, ap *run.Approval, r Resolution, at placement) (json.RawMessage, error) {
	if ap.UID != r.UID {
		return nil, fault.NotFound()
	}
	u, err := tx.user()
	if err == nil {
		err = u.CheckEnabled()
	}
	if err != nil {
		return nil, err
	}
	t := ex.Tools[ap.Tool]
	args, hash, err := ex.decidedArgs(t, ap, r)
	if ap.Status != run.ApprovalOpen {
		return nil, ex.closedError(ap, r, hash)
	}
	a := tx.state.Action(ap.ActionID)
	switch {
	case !tx.now.Before(ap.ExpiresAt):
		return nil, fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case a == nil || !a.Waiting() || a.ApprovalID != ap.ID:
		return nil, fault.New(fault.Policy, fault.CodeAlreadyResolved, "This is no longer waiting for a decision.")
	case !decisionFits(ap.Kind, r.Decision):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "This decision does not apply here.")
	}
	if executes(r.Decision) {
		if err := tx.checkStale(ap, a, at, r.Decision); err != nil {
			return nil, err
		}
	}
	switch {
	case r.ArgsHash != "" && r.ArgsHash != ap.ArgsHash:
		return nil, fault.New(fault.Policy, fault.CodeStaleView,
			"This has changed since you saw it. Please reload.")
	case !executes(r.Decision):
		return ap.Args, nil
	case err != nil:
		return nil, err
	}
	if err := ex.checkPolicy(tx, t, args, r.Decision); err != nil {
		return nil, err
	}
	if r.Decision == run.ApproveEdited {
		ap.EditHash = hash
	}
	return args, nil
}

// decidedArgs returns the arguments that the decision is about, which are the stored ones or the user's own with what
// the tool derives from them, and the hash by which a repeated decision is recognised.
func (ex *execution) decidedArgs(t *tool.Tool, ap *run.Approval, r Resolution) (json.RawMessage, string, error) {
	if r.Decision != run.ApproveEdited || t == nil {
		return ap.Args, ap.ArgsHash, nil
	}
	args, err := t.Normalize(r.EditedArgs)
	if err != nil {
		f := *fault.As(err)
		f.Field = strings.TrimSuffix("editedArgs/"+f.Field, "/")
		return nil, "", &f
	}
	hash := run.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	if ap.Status == run.ApprovalOpen {
		args, err = t.Revise(ap.Args, args)
	}
	return args, hash, err
}

// closedError returns the answer to a decision about an approval that is no longer open.
func (ex *execution) closedError(ap *run.Approval, r Resolution, hash string) error {
	switch {
	case ap.Status == run.ApprovalExpired:
		return fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case ap.Decision != "" && ap.Decision == r.Decision &&
		(r.Decision != run.ApproveEdited || hash == cmp.Or(ap.EditHash, ap.ArgsHash)):
		return errSameDecision
	case ap.Status == run.ApprovalReplaced:
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was replaced by a new request. Please reload.")
	case ap.Status == run.ApprovalCancelled:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"The run has ended; this can no longer be decided.")
	}
	return fault.New(fault.Policy, fault.CodeAlreadyResolved, "Already decided: %s, at %s.", ap.Decision,
		ap.DecidedAt.Format(time.RFC3339))
}

func decisionFits(k run.Kind, d run.Decision) bool {
	review := d == run.ConfirmDone || d == run.StartNew
	return review == (k == run.KindReview)
}

// checkPolicy evaluates the policy for what the user is about to approve: a deny overrules the user's approval.
func (ex *execution) checkPolicy(tx *tx, t *tool.Tool, args json.RawMessage, decision run.Decision) error {
	v, err := tx.verdict(t, args)
	if err != nil {
		return err
	}
	if v.Mode == policy.Deny {
		return fault.New(fault.Policy, "denied", "%s", v.Reason)
	}
	if decision != run.ApproveAlways {
		return nil
	}
	_, err = tx.alwaysAllowEntries(t, args)
	return err
}

// alwaysAllowEntries returns the entries that "always allow" would store: the exact addresses, for this tool and this
// user.
func (tx *tx) alwaysAllowEntries(t *tool.Tool, args json.RawMessage) ([]policy.Entry, error) {
	targets, err := t.Targets(args)
	if err != nil {
		return nil, err
	}
	entries, err := tx.ex.Rules.Entries(tx.run.UID, t.Name, targets, tx.now)
	if err != nil {
		return nil, err
	}
	u, err := tx.user()
	if err != nil {
		return nil, err
	}
	if len(u.Allow)+len(entries) > run.MaxAllowEntries {
		return nil, fault.New(fault.Policy, "allowlist_full",
			"You have reached the limit of %d always-allowed recipients.",
			run.MaxAllowEntries)
	}
	return entries, nil
}

var statusAfter = map[run.Decision]run.ApprovalStatus{
	run.Reject: run.ApprovalRejected, run.ApproveOnce: run.ApprovalApproved,
	run.ApproveAlways: run.ApprovalApproved,
	run.ApproveEdited: run.ApprovalApproved, run.ConfirmDone: run.ApprovalApproved,
	run.StartNew: run.ApprovalApproved,
}

// resolve adds the decision, what follows from it, and the audit entry.
func (tx *tx) resolve(ap *run.Approval, r Resolution, args json.RawMessage, in tool.Place) error {
	a := tx.state.Action(ap.ActionID)
	t := tx.ex.Tools[ap.Tool]
	if r.Decision == run.ApproveEdited {
		ap.Args, ap.ArgsHash = args, run.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	}
	if r.Decision == run.ApproveAlways {
		if err := tx.alwaysAllow(t, args); err != nil {
			return err
		}
	}
	if err := tx.closeApproval(ap.ID, statusAfter[r.Decision], r.Decision); err != nil {
		return err
	}
	decided := &run.Decided{ApprovalID: ap.ID, Decision: r.Decision, By: r.UID, Comment: clip.Text(r.Comment, 2000),
		ArgsHash: ap.ArgsHash}
	if r.Decision == run.ApproveEdited {
		decided.EditedArgs = args
	}
	if err := tx.addEvent(run.Event{Type: run.ActionDecided, ActionID: a.ID, Decided: decided}); err != nil {
		return err
	}
	kind := audit.Decided
	if ap.Kind == run.KindReview {
		kind = audit.Reviewed
	}
	tx.addAudit(kind, a, func(e *audit.Entry) { e.Decision = string(r.Decision) })
	if r.Decision == run.StartNew {
		return tx.restartCall(a, t, in)
	}
	if soon := tx.now.Add(minTimeAfterApproval); a.Runnable() && tx.run.Deadline.Before(soon) {
		tx.run.Deadline = soon
	}
	if end := tx.ex.ending(tx.state, tx.run, tx.now); end != nil && tx.idle() {
		return tx.endRun(end)
	}
	return nil
}

// minTimeAfterApproval is how long a run has at least after an approval, so that a call approved in the run's last
// moments is still carried out.
const minTimeAfterApproval = time.Hour

// alwaysAllow adds the exact recipients to the user's allowlist.
func (tx *tx) alwaysAllow(t *tool.Tool, args json.RawMessage) error {
	entries, err := tx.alwaysAllowEntries(t, args)
	if err != nil {
		return err
	}
	return tx.updateUser(func(u *run.User) { u.AlwaysAllow(entries, tx.now) })
}

// restartCall proposes the call again, to be approved again for where it would act now, in place of the one whose
// outcome stays unknown.
func (tx *tx) restartCall(old *run.Action, t *tool.Tool, in tool.Place) error {
	call := old.ProposedCall
	call.Attempt++
	call.Place, call.ArgsHash = in, run.ArgsHash(tx.run.UID, t.Spec, in, call.Args)
	call.RequiresApproval, call.UserInitiated = true, false
	id := run.ActionID(tx.run.ID, call.Turn, call.Index, call.Attempt)
	if err := tx.addEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	return tx.requestApproval(tx.state.Action(id), run.KindApproval,
		"You asked to try this again. It may already have been done; please check first.")
}

// idle reports whether no process moves the run, so that it may be ended at once.
func (tx *tx) idle() bool {
	if tx.run.Lease.Held("", tx.now) {
		return false
	}
	for _, a := range tx.state.Actions {
		if a.Status == run.ActionExecuting {
			return false
		}
	}
	return true
}

// Cancel stops the run at the next safe point: at once when no process moves it, otherwise after the step that is under
// way. A run that has ended stays as it is.
func (l *Loop) Cancel(ctx context.Context, uid, runID string) (*run.View, error) {
	ex := l.newExecution(runID, nil)
	soon, cancel := withAnswerTimeout(ctx)
	defer cancel()
	if err := ex.loadOwned(soon, uid); err != nil {
		return nil, err
	}
	asked := false
	err := ex.transition(soon, func(tx *tx) error {
		if tx.state.End != nil || tx.state.Cancelled {
			return nil
		}
		tx.keepLease = true
		if tx.idle() { // what follows from the time comes first
			if err := tx.applyClock(); err != nil || tx.state.End != nil {
				return err
			}
		}
		asked = true
		if err := tx.addEvent(run.Event{Type: run.CancelRequested}); err != nil {
			return err
		}
		if tx.idle() {
			return tx.endRun(tx.ex.ending(tx.state, tx.run, tx.now))
		}
		return nil
	})
	if err == nil && asked && ex.state.End == nil {
		ex.publish(ctx) // the process that moves it may die before it sees this
	}
	if err != nil {
		return nil, err
	}
	return ex.currentView(ctx)
}
