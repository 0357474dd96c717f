package loop

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// commonTools returns the tools of the agents that run in the default function. Linked accounts of all other tools are
// read only when a decision needs them, because the run's agent is unknown until the run is read.
func commonTools(l *Loop) tool.Set {
	common := tool.Set{}
	for _, a := range l.Agents {
		if a.Worker == "" {
			maps.Copy(common, a.Of(l.Tools))
		}
	}
	return common
}

// Resolve records the decision about a waiting call. It does not advance the run; the process that receives the resume
// does. Repeating the same decision returns the same result. Errors: AuthError not_found; PolicyError already_resolved,
// expired, stale_view, integrity, not_applicable, denied; ValidationError for edited arguments that do not fit. A
// PolicyError is also recorded in the audit log, unless the store fails (see approval.RecordRefusal).
//
// After an undo, the errors of [Loop.Start] mean that the undo is recorded, and that an earlier call could not be
// proposed again. The same undo tries that again.
func (l *Loop) Resolve(ctx context.Context, r approval.Resolution) (*run.View, error) {
	runID, ok := run.RunOfApproval(r.ApprovalID)
	if !ok {
		return nil, fault.NotFound()
	}
	ex := l.NewExecution(runID, nil)
	path := document.ApprovalPath(r.ApprovalID)
	soon, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	also := append(commonTools(l).Reads(tool.Scope{UID: r.UID}), path, document.UserPath(r.UID))
	if err := ex.LoadOwned(soon, r.UID, also...); err != nil {
		return nil, err
	}
	if !ex.Docs[path].Exists() {
		return nil, fault.NotFound()
	}
	t, err := approval.ToolToPlace(soon, ex, r)
	if err != nil {
		return nil, err
	}
	r.Look(soon, ex, t)
	d := decision{Resolution: r, tool: t, places: approval.AskPlaces(soon, ex, ex.Run.Scope(), t)}
	err = ex.Transition(soon, func(tx *unit.Tx) error { return d.decide(soon, tx) })
	if d.refused != nil { // whether or not the audit log has it
		if err != nil {
			ex.Log.WarnContext(ctx, "a refused decision could not be recorded in the audit log", "runId", ex.ID,
				"approvalId", r.ApprovalID, "error", err)
		}
		return nil, d.refused
	}
	if err != nil {
		return nil, err
	}
	if d.decided && needsMover(ex) {
		ex.Publish(ctx)
	}
	for _, other := range d.others {
		other.Publish(ctx)
	}
	if r.Decision == run.Undo {
		if err := l.reopenEarlier(ctx, ex); err != nil {
			return nil, err
		}
	}
	return currentView(ctx, ex)
}

// decision is a user's decision while it is recorded.
type decision struct {
	approval.Resolution
	tool   *tool.Tool
	places approval.Places

	refused error             // why the decision was refused, or nil
	decided bool              // stays true if the commit's answer was lost and the next read finds the decision
	others  []*unit.Execution // runs whose earlier calls this decision has rejected
}

// decide checks the decision and records it, or records its refusal.
func (d *decision) decide(ctx context.Context, tx *unit.Tx) error {
	ap, err := tx.Approval(d.ApprovalID)
	if err != nil {
		return err
	}
	tx.KeepLease, d.refused = true, nil
	at, err := d.places.Of(ctx, tx, d.tool)
	if err != nil {
		return err
	}
	args, err := approval.Check(tx.Ex, tx, ap, d.Resolution, at)
	var earlier []approval.EarlierCall
	if err == nil {
		earlier, err = approval.Earlier(ctx, tx, d.Resolution)
	} else if errors.Is(err, approval.ErrSameDecision) {
		err = cmp.Or(approval.LeftEarlier(ctx, tx, ap, d.Resolution), err)
	}
	switch {
	case errors.Is(err, approval.ErrSameDecision):
		return nil
	case approval.AsksForPasskey(err):
		return err
	case fault.As(err).Class == fault.Policy:
		d.refused = err
		return approval.RecordRefusal(tx, ap, d.Resolution, err)
	case err != nil:
		return err
	}
	d.decided = true
	if err := approval.Record(ctx, tx, ap, d.Resolution, args, at.Place); err != nil || d.Decision == run.StartNew {
		return err
	}
	if err := approval.RejectEarlier(ctx, earlier, d.Resolution); err != nil {
		return err
	}
	d.others = tx.Joined()
	return afterDecision(tx, ap, d.Resolution)
}

// afterDecision adds what follows from the decision to its commit. If no process advances the run, that includes the
// end of calls that no longer run, and of the run.
func afterDecision(tx *unit.Tx, ap *run.Approval, r approval.Resolution) error {
	if err := planDecided(tx, ap, r); err != nil {
		return err
	}
	if !idle(tx) {
		return nil
	}
	if err := skipNotRun(tx); err != nil {
		return err
	}
	if end := tx.Ending(); end != nil {
		return endRun(tx, end)
	}
	return nil
}

// takingBack returns the function with which unit.Env rejects a waiting call at the user's word in the conversation.
func takingBack(l *Loop) func(ctx context.Context, uid, approvalID string) error {
	return func(ctx context.Context, uid, approvalID string) error {
		_, err := l.Resolve(ctx, approval.Resolution{UID: uid, ApprovalID: approvalID, Decision: run.TakeBack})
		return err
	}
}

// needsMover reports whether a process must work on the run, even if only to publish its events.
func needsMover(ex *unit.Execution) bool {
	return ex.State.End == nil || run.NeedsDisposal(ex.State) || ex.HasUnpublished()
}
