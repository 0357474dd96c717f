package approval

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// maxAsked is the number of cards of the conversation in which earlierCards searches.
const maxAsked = 12

// earlierCards returns the waiting cards of the conversation's earlier requests that the new card may correct, newest
// first. Each has the same tool, and the same target or a value that the new card also shows.
func earlierCards(tx *unit.Tx, a *run.Action, ap *run.Approval) (earlier []run.EarlierCard, err error) {
	if ap.Kind != run.KindApproval || a.AsksAlways() {
		return nil, nil
	}
	thread := tx.Thread
	if thread == nil {
		thread = &run.Thread{}
		if _, err := tx.Doc(document.ThreadPath(tx.Run.ThreadID), thread); err != nil {
			return nil, err
		}
	}
	ids := thread.Asked(tx.Run.ID, maxAsked)
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = document.ApprovalPath(id)
	}
	if err := tx.Need(paths...); err != nil {
		return nil, err
	}
	for _, path := range paths {
		var old run.Approval
		doc, err := tx.Doc(path, &old)
		if err != nil {
			return nil, err
		}
		if doc.Exists() && len(earlier) < run.MaxEarlier && canDecide(&old, tx.Now) && corrects(tx, ap, &old) {
			earlier = append(earlier, run.EarlierCard{ApprovalID: old.ID, Title: old.Preview.Title,
				RequestedAt: old.RequestedAt})
		}
	}
	return earlier, nil
}

// corrects reports whether the new card may be a correction of the old one.
func corrects(tx *unit.Tx, ap, old *run.Approval) bool {
	if old.UID != ap.UID || old.Kind != run.KindApproval || old.Tool != ap.Tool {
		return false
	}
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, ap.Tool)
	for _, f := range ap.Preview.Fields {
		own := f.Value != "" && f.Label != ap.Place.Label && f.Label != alwaysLabel
		if own && slices.ContainsFunc(old.Preview.Fields, func(o tool.Field) bool {
			return o.Label == f.Label && o.Value == f.Value
		}) {
			return true
		}
	}
	return sharesTarget(t, ap, old)
}

// sharesTarget reports whether both calls reach the same person or thing. Arguments that the tool no longer accepts
// reach nothing.
func sharesTarget(t *tool.Tool, ap, old *run.Approval) bool {
	if t == nil {
		return false
	}
	now, err := t.Targets(ap.Args)
	before, err2 := t.Targets(old.Args)
	return err == nil && err2 == nil &&
		slices.ContainsFunc(now, func(n tool.Target) bool { return slices.Contains(before, n) })
}

// canDecide reports whether the user can still decide about the approval.
func canDecide(ap *run.Approval, now time.Time) bool {
	return ap.Status == run.ApprovalOpen && now.Before(ap.ExpiresAt)
}
