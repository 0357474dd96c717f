package approval

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Earlier joins the runs of the earlier cards that the decision rejects to the tx, and returns those cards that still
// wait. It changes nothing. The error is PolicyError already_resolved if a card was approved in the meantime, and
// stale_view if a card was replaced by another waiting card.
func Earlier(ctx context.Context, tx *unit.Tx, r Resolution) (waiting []EarlierCall, err error) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(r.Rejects))) {
		runID, _ := run.RunOfApproval(id)
		of, err := tx.Join(ctx, runID)
		if fault.Is(err, fault.Auth, fault.CodeNotFound) {
			continue // the run was deleted with its conversation
		}
		if err != nil {
			return nil, err
		}
		old, err := of.Approval(id)
		if err != nil {
			return nil, err
		}
		if err := earlierError(tx, old, of.State.Action(old.ActionID)); err != nil {
			return nil, err
		}
		if canDecide(old, tx.Now) {
			waiting = append(waiting, EarlierCall{of, old})
		}
	}
	return waiting, nil
}

// LeftEarlier returns an error if a repeated decision names earlier cards that still wait. The recorded decision did
// not reject them.
func LeftEarlier(ctx context.Context, tx *unit.Tx, ap *run.Approval, r Resolution) error {
	waiting, err := Earlier(ctx, tx, r)
	if err == nil && len(waiting) > 0 {
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "This was approved at %s, and that did not reject "+
			"the earlier card. Please decide about that one alone.", clock(tx, ap.DecidedAt))
	}
	return err
}

// An EarlierCall is a waiting call of another run. It is rejected when the user approves a newer call.
type EarlierCall struct {
	of *unit.Tx
	ap *run.Approval
}

// earlierError returns the reason why an earlier card cannot be rejected. It returns nil if the card can be rejected,
// or if its call will not run anyway.
func earlierError(tx *unit.Tx, old *run.Approval, a *run.Action) error {
	const nothing = "Nothing was decided about this one. "
	switch {
	case old.Status == run.ApprovalApproved && a != nil && a.Held(tx.Now):
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "The earlier card was approved at %s, and that can "+
			"still be undone. "+nothing+"Undo that first, or decide about this one alone.", clock(tx, old.DecidedAt))
	case old.Status == run.ApprovalApproved:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "The earlier card was approved at %s. "+nothing+
			"Please decide about it alone.", clock(tx, old.DecidedAt))
	case old.Status == run.ApprovalReplaced:
		return fault.New(fault.Policy, fault.CodeStaleView, "The earlier card was replaced by another one, which "+
			"waits. "+nothing+"Please decide about each alone.")
	}
	return nil
}

// RejectEarlier records that the calls are rejected because the user approves a newer one instead.
func RejectEarlier(ctx context.Context, calls []EarlierCall, r Resolution) error {
	for _, c := range calls {
		no := Resolution{UID: r.UID, ApprovalID: c.ap.ID, Decision: run.Reject, replacedBy: r.ApprovalID}
		if err := Record(ctx, c.of, c.ap, no, c.ap.Args, c.ap.Place); err != nil {
			return err
		}
	}
	return nil
}
