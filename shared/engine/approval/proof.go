package approval

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// prove signs a decision that permits something, together with the allowlist entries that it stores. It changes d and
// entries. It does nothing if no ring requires signatures and this process cannot sign.
func prove(ctx context.Context, tx *unit.Tx, ap *run.Approval, d *run.Decided, r Resolution,
	entries []policy.Entry) error {
	ring := tx.Ex.Decisions
	switch {
	case !d.Decision.Permits() || !ring.Signs() && !ring.Requires():
		return nil
	case !ring.Signs(): // it would ask again, each time
		return fault.Unavailable("This server cannot sign decisions, so nothing was recorded.", nil)
	}
	a := tx.State.Action(ap.ActionID)
	var covers any
	if ap.Kind == run.KindPlan {
		var err error
		if covers, err = run.CoversOf(ap.Args, ap.ArgsHash, r.Strict); err != nil {
			return err
		}
	}
	yes := tx.Run.Deciding(a, d, covers)
	if yes.Until = tx.Run.Deadline; tx.State.Plan == nil && yes.Until.Before(tx.Now.Add(minTimeAfterApproval)) {
		yes.Until = tx.Now.Add(minTimeAfterApproval)
	}
	statements := []decision.Statement{yes}
	for _, e := range entries {
		statements = append(statements, e.Statement(tx.Run.UID))
	}
	proofs, err := ring.Sign(ctx, decision.Signature{At: tx.Now, Auth: r.Auth}, statements...)
	if err != nil {
		return fault.Unavailable("The decision could not be signed, so it was not recorded. Please try again.", err)
	}
	d.Proof = proofs[0]
	for i := range entries {
		entries[i].Proof = proofs[i+1]
	}
	return nil
}

// proveOwn signs a call that its user makes, if this process can sign. Otherwise the user is asked before the call
// runs.
func proveOwn(ctx context.Context, tx *unit.Tx, id string, call *run.ProposedCall) error {
	if !tx.Ex.Decisions.Signs() || !call.UserInitiated || !call.SideEffect || call.AsksAlways() {
		return nil
	}
	s := tx.Run.OwnCall(id, call.Tool, call.ArgsHash, call.Place)
	s.Until = tx.Run.Deadline
	proofs, err := tx.Ex.Decisions.Sign(ctx, decision.Signature{At: tx.Now}, s)
	if err != nil {
		return fault.Unavailable("The call could not be signed, so it was not made. Please try again.", err)
	}
	call.OwnProof = proofs[0]
	return nil
}

// CheckProof checks the signature of the decision that permits the call, or of the user's own call. The statement is
// derived from the call that is about to run. It returns nil if neither permits the call: the policy then decides. The
// errors are those of [decision.Ring.Verify].
func CheckProof(tx *unit.Tx, a *run.Action, t *tool.Tool) error {
	ring := tx.Ex.Decisions
	own := a.UserInitiated && (a.SideEffect || t.SideEffect)
	if ring == nil || a.Decision == "" && !own {
		return nil
	}
	hash := run.ArgsHash(tx.Run.UID, t.Spec, a.Place, a.Args)
	if a.Decision == "" {
		return ring.Verify(tx.Run.OwnCall(a.ID, t.Name, hash, a.Place), a.OwnProof, tx.Now)
	}
	return ring.Verify(tx.Run.Decided(a, hash, nil), a.Proof, tx.Now)
}

// decide evaluates the policy. Allowlist entries without a valid signature do not count; unproven has the reasons.
func decide(tx *unit.Tx, in policy.Input) (d policy.Decision, unproven []error) {
	for {
		d = tx.Ex.Rules.Decide(in)
		if tx.Ex.Decisions == nil || len(d.Entries) == 0 {
			return d, unproven
		}
		counting := make([]policy.Entry, 0, len(in.Allowlist))
		for _, e := range in.Allowlist {
			err := error(nil)
			if slices.Contains(d.Entries, e.ID) {
				err = checkEntry(tx, e)
			}
			if err == nil {
				counting = append(counting, e)
				continue
			}
			unproven = append(unproven, err)
		}
		if len(counting) == len(in.Allowlist) {
			return d, unproven
		}
		in.Allowlist = counting
	}
}

// checkEntry checks the signature of the entry, or of the one that it replaces after its undo window.
func checkEntry(tx *unit.Tx, e policy.Entry) error {
	if tx.Now.Before(e.From) {
		if e.Replaced == nil {
			return nil // it does not apply
		}
		e = *e.Replaced
	}
	return tx.Ex.Decisions.Verify(e.Statement(tx.Run.UID), e.Proof, tx.Now)
}

// checkPlan checks the signature of the confirmation that contains the plan's grants.
func checkPlan(tx *unit.Tx) error {
	by := tx.State.Plan.Confirmed
	a := tx.State.Action(by.ActionID)
	if tx.Ex.Decisions == nil {
		return nil
	}
	if a == nil {
		return decision.ErrForged
	}
	confirmed := *a
	confirmed.Place = by.Place
	covers := run.PlanCovers{Hash: by.Hash, Strict: by.Strict, Grants: by.Plan.Grants}
	return tx.Ex.Decisions.Verify(tx.Run.Decided(&confirmed, by.Hash, covers), a.Proof, tx.Now)
}

// CodeForged is the error code of a call whose stored decision is forged.
const CodeForged fault.Code = RuleForged

// The rules that the audit names for a permission that did not count.
const (
	RuleForged   = "forged_decision"
	RuleUnsigned = "unsigned_decision"
)

// NoteUnproven records that a permission of the call did not count because of its signature. A forged one is logged for
// the operator's alert.
func NoteUnproven(tx *unit.Tx, a *run.Action, reasons ...error) {
	for _, why := range reasons {
		rule := RuleUnsigned
		if errors.Is(why, decision.ErrForged) {
			rule = RuleForged
			tx.Ex.Log.ErrorContext(context.Background(), "a permission in the store has a wrong signature and "+
				"does not count", "counter", "forged_decision", "runId", tx.Run.ID, "actionId", a.ID)
		}
		tx.AddAudit(audit.Refused, a, func(e *audit.Entry) {
			e.Decision, e.Rule = string(a.Decision), rule
			e.ErrorCode, e.Message = string(fault.Policy), rule
		})
	}
}

// Forged records that the decision about a call is forged. No earlier permission of the run counts from then on.
func Forged(tx *unit.Tx, a *run.Action) {
	tx.Run.Quarantined, tx.Run.Forged, tx.Changed = tx.Run.Log.Count, true, true
	NoteUnproven(tx, a, decision.ErrForged)
}
