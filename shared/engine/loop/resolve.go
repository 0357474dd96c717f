package loop

import (
	"context"
	"errors"
	"maps"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/store/document"
)

// commonTools returns the tools of the agents that run in the default function. Linked accounts of all other tools are
// read only when a decision needs them, because the run's agent is unknown until the run is read.
func commonTools(l *Loop) tool.Set {
	common := tool.Set{}
	for _, a := range l.Agents {
		if a.Home == "" {
			maps.Copy(common, a.Of(l.Tools))
		}
	}
	return common
}

// Resolve records the decision about a waiting call. It does not advance the run; the process that receives the resume
// does. Repeating the same decision returns the same result. Errors: AuthError not_found; PolicyError already_resolved,
// expired, stale_view, integrity, not_applicable, denied; ValidationError for edited arguments that do not fit. A
// PolicyError is also recorded in the audit log, unless the store fails (see approval.RecordRefusal).
func (l *Loop) Resolve(ctx context.Context, r approval.Resolution) (*run.View, error) {
	runID, ok := run.RunOfApproval(r.ApprovalID)
	if !ok {
		return nil, fault.NotFound()
	}
	ex := l.NewExecution(runID, nil)
	path := document.ApprovalPath(r.ApprovalID)
	soon, cancel := journal.WithAnswerTimeout(ctx)
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
	places := approval.AskPlaces(soon, ex, ex.Run.Scope(), t)
	decided := false // stays true if the commit's answer was lost and the next read finds the decision
	var refused error
	var others []*journal.Execution
	err = ex.Transition(soon, func(tx *journal.Tx) error {
		ap, err := tx.Approval(r.ApprovalID)
		if err != nil {
			return err
		}
		tx.KeepLease, refused = true, nil
		at, err := places.Of(soon, tx, t)
		if err != nil {
			return err
		}
		args, err := approval.Check(ex, tx, ap, r, at)
		var earlier []approval.EarlierCall
		if err == nil {
			earlier, err = approval.Earlier(soon, tx, r)
		}
		switch {
		case errors.Is(err, approval.ErrSameDecision):
			return nil
		case fault.As(err).Class == fault.Policy:
			refused = err
			return approval.RecordRefusal(tx, ap, r, err)
		case err != nil:
			return err
		}
		decided = true
		if err := approval.Record(tx, ap, r, args, at.Place); err != nil || r.Decision == run.StartNew {
			return err
		}
		if err := approval.RejectEarlier(earlier, r); err != nil {
			return err
		}
		others = tx.Joined()
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
	})
	if refused != nil { // whether or not the audit log has it
		if err != nil {
			ex.Log.WarnContext(ctx, "a refused decision is not in the audit", "runId", ex.ID, "approvalId",
				r.ApprovalID, "error", err)
		}
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if decided && needsMover(ex) {
		ex.Publish(ctx)
	}
	for _, other := range others {
		other.Publish(ctx)
	}
	return currentView(ctx, ex)
}

// takingBack returns the function with which journal.Env rejects a waiting call at the user's word in the conversation.
func takingBack(l *Loop) func(ctx context.Context, uid, approvalID string) error {
	return func(ctx context.Context, uid, approvalID string) error {
		_, err := l.Resolve(ctx, approval.Resolution{UID: uid, ApprovalID: approvalID, Decision: run.TakeBack})
		return err
	}
}

// needsMover reports whether a process must work on the run, even if only to publish its events.
func needsMover(ex *journal.Execution) bool {
	return ex.State.End == nil || run.Unclean(ex.State) || ex.HasUnpublished()
}
