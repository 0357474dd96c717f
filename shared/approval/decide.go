package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/plan"
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
	Comment    string          // given to the model with a rejection; optional, but for another plan (run.Refine)
	Strict     bool            // with the confirmation of a plan: every change of it is asked about
	Hold       time.Duration   // how long a yes can be taken back, up to MaxHold; the operator may have set more
	Rejects    []string        // with a yes: the earlier cards that are rejected in the same commit

	replacedBy string // with a rejection: the approval that is given instead
}

// ErrSameDecision means that the same decision was recorded before.
var ErrSameDecision = errors.New("approval: the same decision was recorded before")

// ToolToPlace returns the tool of the waiting call as it is now, for a decision that would have it carried out, or nil.
// The error says that its server cannot be reached.
func ToolToPlace(ctx context.Context, ex *journal.Execution, r Resolution) (*tool.Tool, error) {
	var ap run.Approval
	if document.Decode(ex.Docs[document.ApprovalPath(r.ApprovalID)], &ap) != nil || ap.Status != run.ApprovalOpen ||
		!executes(r.Decision) {
		return nil, nil // Check says what is wrong
	}
	journal.MeetTools(ctx, ex)
	if a := ex.State.Action(ap.ActionID); a != nil {
		if err := journal.RenewTool(ctx, ex, a); err != nil {
			return nil, err
		}
	}
	return journal.ToolFor(ex, ex.Run, ex.State, ap.Tool), nil
}

// executes reports whether the decision causes the call to be carried out.
func executes(d run.Decision) bool {
	return d != run.Reject && d != run.TakeBack && d != run.Undo && d != run.ConfirmDone && d != run.Refine
}

// Check checks a decision against the approval's present state, and returns the arguments that it approves.
func Check(ex *journal.Execution, tx *journal.Tx, ap *run.Approval, r Resolution, at Placement) (json.RawMessage,
	error) {
	if ap.UID != r.UID {
		return nil, fault.NotFound()
	}
	u, err := tx.User()
	if err == nil {
		err = u.CheckEnabled()
	}
	if err != nil {
		return nil, err
	}
	if err := checkRejects(ap, r); err != nil {
		return nil, err
	}
	if r.Decision == run.Undo {
		return ap.Args, checkUndo(tx, ap)
	}
	if tx.State.Plan != nil && tx.State.Plan.Unreadable {
		return nil, plan.ErrUnreadable
	}
	t := journal.ToolFor(ex, tx.Run, tx.State, ap.Tool)
	args, hash, err := decidedArgs(t, ap, r)
	if ap.Status != run.ApprovalOpen {
		return nil, closedError(ap, tx.State.Action(ap.ActionID), r, hash)
	}
	a := tx.State.Action(ap.ActionID)
	switch {
	case !tx.Now.Before(ap.ExpiresAt):
		return nil, fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case a == nil || !a.Waiting() || a.ApprovalID != ap.ID:
		return nil, fault.New(fault.Policy, fault.CodeAlreadyResolved, "This is no longer waiting for a decision.")
	case ap.Rule == policy.RuleTainted && storesEntries(r.Decision):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"This has what strangers wrote, and that needs your approval each time. Approve it once instead.")
	case tx.State.Input.Via != nil && storesEntries(r.Decision):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"Your agent asks for this, and that needs your approval each time. Approve it once instead.")
	case a.AsksAlways() && (storesEntries(r.Decision) || r.Decision == run.ApproveEdited):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"This takes back exactly what was done. Approve it once, or reject it.")
	case !decisionFits(ap.Kind, r.Decision):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "This decision does not apply here.")
	}
	if r.ArgsHash != "" && r.ArgsHash != ap.ArgsHash { // about another card, which changes nothing about this one
		return nil, fault.New(fault.Policy, fault.CodeStaleView,
			"This has changed since you saw it. Please reload.")
	}
	if executes(r.Decision) {
		if err := checkStale(tx, ap, a, at, r.Decision); err != nil {
			return nil, err
		}
	}
	switch {
	case r.ArgsHash == "" && ap.Kind == run.KindPlan && executes(r.Decision):
		return nil, fault.Invalid("argsHash", "the hash of the plan that you saw is needed")
	case r.Strict && (ap.Kind != run.KindPlan || !executes(r.Decision)):
		return nil, fault.Invalid("strict", "this goes with the confirmation of a plan")
	case r.Decision == run.Refine && strings.TrimSpace(r.Comment) == "":
		return nil, fault.Invalid("comment", "say what should be otherwise")
	case r.Decision == run.Refine && tx.State.Plan.Revision >= plan.MaxRevisions:
		return nil, fault.New(fault.Policy, fault.CodeTooMany,
			"There were %d revisions, which is the limit. Please confirm this one or reject it.", plan.MaxRevisions)
	case len(r.Comment) > maxComment:
		return nil, fault.Invalid("comment", "%d bytes; the limit is %d", len(r.Comment), maxComment)
	case !executes(r.Decision):
		return ap.Args, nil
	case err != nil:
		return nil, err
	}
	if err := checkPolicy(tx, t, ap, args, r.Decision); err != nil {
		return nil, err
	}
	if r.Decision == run.ApproveEdited {
		ap.EditHash, ap.SeenHash = hash, ap.ArgsHash
	}
	return args, nil
}

// checkRejects checks that only a yes rejects earlier cards, and only cards that its own card names.
func checkRejects(ap *run.Approval, r Resolution) error {
	n := len(r.Rejects)
	switch {
	case n > 0 && (ap.Kind != run.KindApproval || !executes(r.Decision)):
		return fault.Invalid("rejects", "this goes with an approval")
	case n > run.MaxEarlier:
		return fault.Invalid("rejects", "%d approvals; the limit is %d", n, run.MaxEarlier)
	}
	for _, id := range r.Rejects {
		if !slices.ContainsFunc(ap.InsteadOf, func(e run.EarlierCard) bool { return e.ApprovalID == id }) {
			return fault.Invalid("rejects", "the card that you approve does not name this one in insteadOf")
		}
	}
	return nil
}

// decidedArgs returns the arguments that the decision is about, which are the stored ones or the user's own with what
// the tool derives from them, and the hash by which a repeated decision is recognised.
func decidedArgs(t *tool.Tool, ap *run.Approval, r Resolution) (json.RawMessage, string, error) {
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
func closedError(ap *run.Approval, a *run.Action, r Resolution, hash string) error {
	switch {
	case ap.Decision == run.Refine && r.Decision == run.Refine && a != nil && a.Comment != r.Comment:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"Another plan was asked for already, in other words. Please wait for it, and refine that.")
	case ap.Status == run.ApprovalExpired:
		return fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case ap.Decision != "" && ap.Decision == r.Decision && sawOther(ap, r):
		return fault.New(fault.Policy, fault.CodeStaleView,
			"Something else was decided than what you saw. Please reload.")
	case ap.Decision != "" && ap.Decision == r.Decision &&
		(r.Decision != run.ApproveEdited || hash == cmp.Or(ap.EditHash, ap.ArgsHash)):
		return ErrSameDecision
	case ap.Status == run.ApprovalReplaced:
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was replaced by a new request. Please reload.")
	case ap.Status == run.ApprovalCancelled:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"This has ended, and can no longer be decided.")
	}
	return fault.New(fault.Policy, fault.CodeAlreadyResolved, "Already decided: %s, at %s.", ap.Decision,
		ap.DecidedAt.Format(time.RFC3339))
}

// sawOther reports whether the user saw something else than what was decided: neither that, nor what was edited.
func sawOther(ap *run.Approval, r Resolution) bool {
	return r.ArgsHash != "" && r.ArgsHash != ap.ArgsHash && r.ArgsHash != ap.SeenHash
}

func decisionFits(k run.Kind, d run.Decision) bool {
	switch {
	case d == run.TakeBack:
		return k == run.KindApproval
	case k == run.KindReview:
		return slices.Contains(reviewDecisions, d)
	case k == run.KindPlan:
		return slices.Contains(planDecisions, d)
	}
	return d != run.Refine && !slices.Contains(reviewDecisions, d)
}

// The lengths of a comment, in bytes: of one with which another plan is asked for, and what is kept of any other.
const (
	maxComment     = 32 << 10
	maxKeptComment = 2000
)

// checkPolicy evaluates the policy for what the user is about to approve: a deny overrules the user's approval.
func checkPolicy(tx *journal.Tx, t *tool.Tool, ap *run.Approval, args json.RawMessage, decision run.Decision) error {
	v, err := Verdict(tx, t, "", tool.Place{}, args)
	if err != nil {
		return err
	}
	if v.Mode == policy.Deny {
		return fault.New(fault.Policy, "denied", "%s", v.Reason)
	}
	_, err = alwaysAllowEntries(tx, t, ap.Place, args, decision)
	return err
}

// alwaysAllowEntries returns the entries that the decision stores: the exact addresses from the place that the card
// shows, or the exact call, for this tool and this user. Most decisions store none.
func alwaysAllowEntries(tx *journal.Tx, t *tool.Tool, in tool.Place, args json.RawMessage,
	decision run.Decision) ([]policy.Entry, error) {
	var entries []policy.Entry
	var err error
	switch decision {
	case run.ApproveAlways:
		entries, err = recipientEntries(tx, t, in, args)
	case run.ApproveAlwaysCommand:
		entries, err = callEntry(tx, t, args)
	}
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	u, err := tx.User()
	if err != nil {
		return nil, err
	}
	if len(u.Allow)+len(entries) > run.MaxAllowEntries {
		return nil, fault.New(fault.Policy, "allowlist_full",
			"You have reached the limit of %d entries that you always allow.",
			run.MaxAllowEntries)
	}
	return entries, nil
}

func recipientEntries(tx *journal.Tx, t *tool.Tool, in tool.Place, args json.RawMessage) ([]policy.Entry, error) {
	targets, err := t.Targets(args)
	if err != nil {
		return nil, err
	}
	return tx.Ex.Rules.Entries(tx.Run.UID, t.Name, in, targets, tx.Now)
}

func callEntry(tx *journal.Tx, t *tool.Tool, args json.RawMessage) ([]policy.Entry, error) {
	verdict, err := Verdict(tx, t, "", tool.Place{}, args)
	if err != nil {
		return nil, err
	}
	e, err := tx.Ex.Rules.CallEntry(tx.Run.UID, t.Name, verdict.Ruling, tx.Now)
	return []policy.Entry{e}, err
}

var statusAfter = map[run.Decision]run.ApprovalStatus{
	run.Reject: run.ApprovalRejected, run.TakeBack: run.ApprovalRejected, run.ApproveOnce: run.ApprovalApproved,
	run.ApproveAlways: run.ApprovalApproved, run.ApproveAlwaysCommand: run.ApprovalApproved,
	run.ApproveEdited: run.ApprovalApproved, run.ConfirmDone: run.ApprovalApproved,
	run.StartNew: run.ApprovalApproved, run.Refine: run.ApprovalReplaced,
}

// Record adds the decision, what follows from it, and the audit entry.
func Record(tx *journal.Tx, ap *run.Approval, r Resolution, args json.RawMessage, in tool.Place) error {
	a := tx.State.Action(ap.ActionID)
	if r.Decision == run.Undo {
		return undo(tx, ap, a, r)
	}
	t := journal.ToolFor(tx.Ex, tx.Run, tx.State, ap.Tool)
	if r.Decision == run.ApproveEdited {
		ap.Args, ap.ArgsHash = args, run.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	}
	held := heldUntil(tx, ap, t, r)
	if err := alwaysAllow(tx, ap, t, args, r.Decision, held); err != nil {
		return err
	}
	if err := Close(tx, ap.ID, statusAfter[r.Decision], r.Decision); err != nil {
		return err
	}
	if err := noteYes(tx, ap, r.Decision); err != nil {
		return err
	}
	comment := r.Comment
	if r.Decision != run.Refine {
		comment = clip.Text(comment, maxKeptComment)
	}
	decided := &run.Decided{ApprovalID: ap.ID, Decision: r.Decision, By: r.UID, Comment: comment, ArgsHash: ap.ArgsHash,
		HeldUntil: held, ReplacedBy: r.replacedBy}
	if err := hold(tx, ap, held); err != nil {
		return err
	}
	if r.Decision == run.ApproveEdited {
		verdict, err := Verdict(tx, t, a.ID, ap.Place, args)
		if err != nil {
			return err
		}
		decided.EditedArgs, decided.Ruled = args, run.RuledBy(verdict.Ruling)
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionDecided, ActionID: a.ID, Decided: decided}); err != nil {
		return err
	}
	kind := audit.Decided
	if ap.Kind == run.KindReview {
		kind = audit.Reviewed
	}
	tx.AddAudit(kind, a, func(e *audit.Entry) {
		if e.Decision = string(r.Decision); r.replacedBy != "" {
			e.Facts = tool.Facts(e.Facts).With(tool.Facts{"replacedBy": r.replacedBy})
		}
	})
	if r.Decision == run.StartNew {
		return restartCall(tx, a, t, in)
	}
	// a session's deadline is its user's
	if soon := tx.Now.Add(minTimeAfterApproval); tx.State.Plan == nil && a.Runnable() && tx.Run.Deadline.Before(soon) {
		tx.Run.Deadline = soon
	}
	return nil
}

// minTimeAfterApproval is how long a run has at least after an approval, so that a call approved in the run's last
// moments is still carried out.
const minTimeAfterApproval = time.Hour

// alwaysAllow adds what the decision always allows to the user's allowlist: the exact recipients, or the exact call.
// The entries of an approval that is held count from then on.
func alwaysAllow(tx *journal.Tx, ap *run.Approval, t *tool.Tool, args json.RawMessage, decision run.Decision,
	held time.Time) error {
	entries, err := alwaysAllowEntries(tx, t, ap.Place, args, decision)
	if err != nil || len(entries) == 0 {
		return err
	}
	for i := range entries {
		entries[i].From, entries[i].Approval = held, ap.ID
	}
	return tx.UpdateUser(func(u *run.User) { u.AlwaysAllow(entries, tx.Now) })
}

// restartCall proposes the call again, to be approved again for where it would act now, in place of the one whose
// outcome stays unknown.
func restartCall(tx *journal.Tx, old *run.Action, t *tool.Tool, in tool.Place) error {
	call := old.ProposedCall
	call.Place = in
	return ask(tx, call, t, "You asked to try this again. It may already have been done; please check first.")
}

// AskAnew proposes another call, about which its user is asked, in place of one that was not done because it is not
// what they were shown any more.
func AskAnew(tx *journal.Tx, old *run.Action, t *tool.Tool, args json.RawMessage, reason string) error {
	call := old.ProposedCall
	call.Args, call.Place = args, old.Place
	return ask(tx, call, t, reason)
}

// ask proposes the call as the next attempt, and asks its user.
func ask(tx *journal.Tx, call run.ProposedCall, t *tool.Tool, reason string) error {
	call.Attempt++
	call.ArgsHash = run.ArgsHash(tx.Run.UID, t.Spec, call.Place, call.Args)
	call.RequiresApproval, call.UserInitiated = true, call.UserInitiated && call.AsksAlways()
	id := run.ActionID(tx.Run.ID, call.Turn, call.Index, call.Attempt)
	if err := tx.AddEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	return Request(tx, tx.State.Action(id), run.KindApproval, reason)
}
