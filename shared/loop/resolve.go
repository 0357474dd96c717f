package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
)

// Resolution is what a user decides about a waiting call.
type Resolution struct {
	UID        string
	ApprovalID string
	Decision   agent.Decision
	ArgsHash   string          // as the user saw it; optional
	EditedArgs json.RawMessage // with approve_with_edits
	Comment    string          // told to the model with a rejection; optional
}

// Resolve records what was decided about a waiting call, and runs nothing: the run is moved by whoever gets the resume.
// The same decision again is answered as the first was. Errors: AuthError not_found; PolicyError already_resolved,
// expired, stale_view, integrity, not_applicable, denied; ValidationError for edited arguments that do not fit. A
// PolicyError is in the audit too, unless the store does not take it (see turnDown).
func (l *Loop) Resolve(ctx context.Context, r Resolution) (*agent.RunView, error) {
	runID, ok := agent.RunOfApproval(r.ApprovalID)
	if !ok {
		return nil, fault.NotFound()
	}
	m := l.mover(runID, nil)
	path := document.ApprovalPath(r.ApprovalID)
	soon, cancel := promptly(ctx)
	defer cancel()
	if err := m.loadOwn(soon, r.UID, path, document.UserPath(r.UID)); err != nil {
		return nil, err
	}
	if !m.docs[path].Exists() {
		return nil, fault.NotFound()
	}
	at := m.placeNow(soon, r)
	decided := false // stays true when the commit's answer was lost, and the next look finds it decided so
	var refused error
	err := m.transition(soon, func(d *draft) error {
		ap, err := d.approval(r.ApprovalID)
		if err != nil {
			return err
		}
		d.keepLease, refused = true, nil
		args, err := m.mayResolve(d, ap, r, at)
		switch {
		case errors.Is(err, errSame):
			return nil
		case fault.As(err).Class == fault.Policy:
			refused = err
			return d.turnDown(ap, r, err)
		case err != nil:
			return err
		}
		decided = true
		return d.resolve(ap, r, args, at.Place)
	})
	if refused != nil { // so it is, whether or not it could be put on record
		if err != nil {
			m.Log.WarnContext(ctx, "a refused decision is not in the audit", "runId", m.id, "approvalId", r.ApprovalID, "error", err)
		}
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if decided && m.state.End == nil {
		m.publish(ctx)
	}
	return m.standing(ctx)
}

// errSame says that exactly this was decided before.
var errSame = errors.New("loop: decided so before")

// placeNow asks where the waiting call would act, where a decision would have it carried out.
func (m *mover) placeNow(ctx context.Context, r Resolution) (at place) {
	var ap agent.Approval
	if document.Decode(m.docs[document.ApprovalPath(r.ApprovalID)], &ap) != nil || ap.Status != agent.ApprovalOpen || !carriesOut(r.Decision) {
		return at // mayResolve says what is wrong
	}
	if t := m.Tools[ap.Tool]; t != nil {
		at.Place, at.refusal = t.Place(ctx, r.UID)
	}
	return at
}

// carriesOut reports whether the decision has something done.
func carriesOut(d agent.Decision) bool { return d != agent.Reject && d != agent.ConfirmDone }

// mayResolve checks a decision against the approval as it stands, and gives the arguments that it approves.
func (m *mover) mayResolve(d *draft, ap *agent.Approval, r Resolution, at place) (json.RawMessage, error) {
	if ap.UID != r.UID {
		return nil, fault.NotFound()
	}
	u, err := d.theUser()
	if err == nil {
		err = u.MayAct()
	}
	if err != nil {
		return nil, err
	}
	t := m.Tools[ap.Tool]
	args, hash, err := m.wanted(t, ap, r)
	if ap.Status != agent.ApprovalOpen {
		return nil, m.closedAnswer(ap, r, hash)
	}
	a := d.state.Action(ap.ActionID)
	switch {
	case !d.now.Before(ap.ExpiresAt):
		return nil, fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case a == nil || !a.Waiting() || a.ApprovalID != ap.ID:
		return nil, fault.New(fault.Policy, fault.CodeAlreadyResolved, "The run does not wait for this any more.")
	case !applies(ap.Kind, r.Decision):
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "This decision does not fit what is asked.")
	}
	if carriesOut(r.Decision) {
		if err := d.upToDate(ap, a, at, r.Decision); err != nil {
			return nil, err
		}
	}
	switch {
	case r.ArgsHash != "" && r.ArgsHash != ap.ArgsHash:
		return nil, fault.New(fault.Policy, fault.CodeStaleView, "This is not what you were shown. Please load it again.")
	case !carriesOut(r.Decision):
		return ap.Args, nil
	case err != nil:
		return nil, err
	}
	if err := m.permitted(d, t, args, r.Decision); err != nil {
		return nil, err
	}
	if r.Decision == agent.ApproveEdited {
		ap.EditHash = hash
	}
	return args, nil
}

// wanted are the arguments that the decision is about, the stored ones or the user's own with what follows from them, and the
// hash by which the same decision is known again.
func (m *mover) wanted(t *tool.Tool, ap *agent.Approval, r Resolution) (json.RawMessage, string, error) {
	if r.Decision != agent.ApproveEdited || t == nil {
		return ap.Args, ap.ArgsHash, nil
	}
	args, err := t.Normalize(r.EditedArgs)
	if err != nil {
		f := *fault.As(err)
		f.Field = strings.TrimSuffix("editedArgs/"+f.Field, "/")
		return nil, "", &f
	}
	hash := agent.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	if ap.Status == agent.ApprovalOpen {
		args, err = t.Revise(ap.Args, args)
	}
	return args, hash, err
}

// closedAnswer is the answer to a decision that comes after the first.
func (m *mover) closedAnswer(ap *agent.Approval, r Resolution, hash string) error {
	switch {
	case ap.Status == agent.ApprovalExpired:
		return fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case ap.Decision != "" && ap.Decision == r.Decision && (r.Decision != agent.ApproveEdited || hash == cmp.Or(ap.EditHash, ap.ArgsHash)):
		return errSame
	case ap.Status == agent.ApprovalReplaced:
		return fault.New(fault.Policy, fault.CodeStaleView, "You have been asked for this afresh. Please load it again.")
	case ap.Status == agent.ApprovalCancelled:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "The run has ended, so this cannot be decided any more.")
	}
	return fault.New(fault.Policy, fault.CodeAlreadyResolved, "This was decided before: %s, at %s.", ap.Decision, ap.DecidedAt.Format(time.RFC3339))
}

func applies(k agent.Kind, d agent.Decision) bool {
	review := d == agent.ConfirmDone || d == agent.StartNew
	return review == (k == agent.KindReview)
}

// permitted asks the policy about what the user is about to approve: a deny dominates the user's own yes.
func (m *mover) permitted(d *draft, t *tool.Tool, args json.RawMessage, decision agent.Decision) error {
	v, err := d.verdict(t, args)
	if err != nil {
		return err
	}
	if v.Mode == policy.Deny {
		return fault.New(fault.Policy, "denied", "%s", v.Reason)
	}
	if decision != agent.ApproveAlways {
		return nil
	}
	_, err = d.alwaysAllowed(t, args)
	return err
}

// alwaysAllowed are the entries that "always allow" would store: the exact recipients, for this tool and this user.
func (d *draft) alwaysAllowed(t *tool.Tool, args json.RawMessage) ([]policy.Entry, error) {
	to, err := t.Recipients(args)
	if err != nil {
		return nil, err
	}
	entries, err := d.m.Rules.Entries(d.run.UID, t.Name, to, d.now)
	if err != nil {
		return nil, err
	}
	u, err := d.theUser()
	if err != nil {
		return nil, err
	}
	if len(u.Allow)+len(entries) > agent.MaxAllow {
		return nil, fault.New(fault.Policy, "allowlist_full", "You always allow %d recipients, which is the limit.", agent.MaxAllow)
	}
	return entries, nil
}

var closedBy = map[agent.Decision]agent.ApprovalStatus{
	agent.Reject: agent.ApprovalRejected, agent.ApproveOnce: agent.ApprovalApproved, agent.ApproveAlways: agent.ApprovalApproved,
	agent.ApproveEdited: agent.ApprovalApproved, agent.ConfirmDone: agent.ApprovalApproved, agent.StartNew: agent.ApprovalApproved,
}

// resolve writes the decision, what it entails, and the audit entry, as one.
func (d *draft) resolve(ap *agent.Approval, r Resolution, args json.RawMessage, in tool.Place) error {
	a := d.state.Action(ap.ActionID)
	t := d.m.Tools[ap.Tool]
	if r.Decision == agent.ApproveEdited {
		ap.Args, ap.ArgsHash = args, agent.ArgsHash(ap.UID, t.Spec, ap.Place, args)
	}
	if r.Decision == agent.ApproveAlways {
		if err := d.alwaysAllow(t, args); err != nil {
			return err
		}
	}
	if err := d.closeApproval(ap.ID, closedBy[r.Decision], r.Decision); err != nil {
		return err
	}
	decided := &agent.Decided{ApprovalID: ap.ID, Decision: r.Decision, By: r.UID, Comment: agent.Cut(r.Comment, 2000), ArgsHash: ap.ArgsHash}
	if r.Decision == agent.ApproveEdited {
		decided.EditedArgs = args
	}
	if err := d.event(agent.Event{Type: agent.ActionDecided, ActionID: a.ID, Decided: decided}); err != nil {
		return err
	}
	kind := audit.Decided
	if ap.Kind == agent.KindReview {
		kind = audit.Reviewed
	}
	d.record(kind, a, func(e *audit.Entry) { e.Decision = string(r.Decision) })
	if r.Decision == agent.StartNew {
		return d.startNew(a, t, in)
	}
	if soon := d.now.Add(yesTime); a.Runnable() && d.run.Deadline.Before(soon) {
		d.run.Deadline = soon
	}
	if end := d.m.ending(d.state, d.run, d.now); end != nil && d.idle() {
		return d.end(end)
	}
	return nil
}

// yesTime is how long a run has at least after a yes, so that one in its last moments is carried out.
const yesTime = time.Hour

// alwaysAllow stores the exact recipients.
func (d *draft) alwaysAllow(t *tool.Tool, args json.RawMessage) error {
	entries, err := d.alwaysAllowed(t, args)
	if err != nil {
		return err
	}
	return d.moveUser(func(u *agent.User) { u.AlwaysAllow(entries, d.now) })
}

// startNew plans the call afresh, to be approved afresh for where it would act now, instead of the one whose outcome stays
// unknown.
func (d *draft) startNew(old *agent.Action, t *tool.Tool, in tool.Place) error {
	plan := old.Plan
	plan.Again++
	plan.Place, plan.ArgsHash = in, agent.ArgsHash(d.run.UID, t.Spec, in, plan.Args)
	plan.RequiresApproval, plan.Own = true, false
	id := agent.ActionID(d.run.ID, plan.Turn, plan.Index, plan.Again)
	if err := d.event(agent.Event{Type: agent.ActionPlan, ActionID: id, Plan: &plan}); err != nil {
		return err
	}
	return d.ask(d.state.Action(id), agent.KindApproval, "You asked for it to be tried again. It may have been done before: please check first.")
}

// idle reports whether nobody moves the run, so that it may be ended at once.
func (d *draft) idle() bool {
	if d.run.Lease.Held("", d.now) {
		return false
	}
	for _, a := range d.state.Actions {
		if a.Status == agent.ActionExecuting {
			return false
		}
	}
	return true
}

// Cancel stops the run at the next safe point: at once when nobody moves it, otherwise after what its mover is doing.
// A run that has ended stays as it is.
func (l *Loop) Cancel(ctx context.Context, uid, runID string) (*agent.RunView, error) {
	m := l.mover(runID, nil)
	soon, cancel := promptly(ctx)
	defer cancel()
	if err := m.loadOwn(soon, uid); err != nil {
		return nil, err
	}
	asked := false
	err := m.transition(soon, func(d *draft) error {
		if d.state.End != nil || d.state.Cancelled {
			return nil
		}
		d.keepLease = true
		if d.idle() { // what time has made of the run comes first
			if err := d.lapse(); err != nil || d.state.End != nil {
				return err
			}
		}
		asked = true
		if err := d.event(agent.Event{Type: agent.CancelRequested}); err != nil {
			return err
		}
		if d.idle() {
			return d.end(d.m.ending(d.state, d.run, d.now))
		}
		return nil
	})
	if err == nil && asked && m.state.End == nil {
		m.publish(ctx) // whoever moves it may die before it sees this
	}
	if err != nil {
		return nil, err
	}
	return m.standing(ctx)
}
