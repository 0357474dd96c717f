package approval

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// prove signs a decision that permits something, together with the allowlist entries that it stores, and adds the
// confirmation of the user's passkey to them. It changes d and entries. It does nothing if no ring requires signatures
// and this process cannot sign.
func prove(ctx context.Context, tx *unit.Tx, ap *run.Approval, d *run.Decided, r Resolution, args json.RawMessage,
	entries []policy.Entry) error {
	ring := tx.Ex.Decisions
	switch {
	case !d.Decision.Permits() || !ring.Signs() && !ring.Requires():
		return nil
	case !ring.Signs(): // it would ask again, each time
		return fault.Unavailable("This server cannot sign decisions, so nothing was recorded.", nil)
	}
	confirmed, err := confirm(tx, ap, d, r, args, entries)
	if err != nil {
		return err
	}
	if confirmed != nil {
		d.Passkey = confirmed.Assertion
		confirmed.Note(&r.Auth)
		tx.Put(document.PasskeysPath(tx.Run.UID), confirmed.Set)
	}
	covers, err := planCovers(ap, args, d.ArgsHash, r.Strict)
	if err != nil {
		return err
	}
	yes := tx.Run.Deciding(tx.State.Action(ap.ActionID), d, covers)
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
		entries[i].Proof, entries[i].Passkey = proofs[i+1], d.Passkey
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

// CheckProof checks the signature of the decision that permits the call, or of the user's own call, and the passkey if
// the call needs one. The statement is derived from the call that is about to run. unproven is nil if neither permits
// the call: the policy then decides. It is an error of [decision.Ring.Verify], or [passkey.ErrMissing].
func CheckProof(tx *unit.Tx, a *run.Action, t *tool.Tool) (unproven, err error) {
	ring := tx.Ex.Decisions
	own := a.UserInitiated && (a.SideEffect || t.SideEffect)
	if ring == nil || a.Decision == "" && !own {
		return nil, nil
	}
	hash := run.ArgsHash(tx.Run.UID, t.Spec, a.Place, a.Args)
	s, proof := tx.Run.Decided(a, hash, nil), a.Proof
	if a.Decision == "" {
		s, proof = tx.Run.OwnCall(a.ID, t.Name, hash, a.Place), a.OwnProof
	}
	unproven = ring.Verify(s, proof, tx.Now)
	if len(a.RestsOn) > 0 && errors.Is(unproven, decision.ErrForged) { // the release before signs no preconditions
		earlier := *a
		earlier.RestsOn = nil
		unproven = ring.Verify(tx.Run.Decided(&earlier, hash, nil), proof, tx.Now)
	}
	if unproven != nil {
		return unproven, nil
	}
	if needed, err := needsPasskey(tx, t, a.Decision, a.Args); err != nil || !needed {
		return nil, err
	}
	return checkPasskey(tx, s, a.Passkey, proof)
}

// decide evaluates the policy. Allowlist entries without a valid signature or passkey do not count; unproven has the
// reasons.
func decide(tx *unit.Tx, in policy.Input) (d policy.Decision, unproven []error, err error) {
	for {
		d = tx.Ex.Rules.Decide(in)
		if tx.Ex.Decisions == nil || len(d.Entries) == 0 {
			return d, unproven, nil
		}
		counting := make([]policy.Entry, 0, len(in.Allowlist))
		for _, e := range in.Allowlist {
			why := error(nil)
			if slices.Contains(d.Entries, e.ID) {
				if why, err = checkEntry(tx, e, in); err != nil {
					return d, nil, err
				}
			}
			if why == nil {
				counting = append(counting, e)
				continue
			}
			unproven = append(unproven, why)
		}
		if len(counting) == len(in.Allowlist) {
			return d, unproven, nil
		}
		in.Allowlist = counting
	}
}

// checkEntry checks the signature of the entry, or of the one that it replaces after its undo window, and the passkey
// that confirmed it.
func checkEntry(tx *unit.Tx, e policy.Entry, in policy.Input) (unproven, err error) {
	if tx.Now.Before(e.From) {
		if e.Replaced == nil {
			return nil, nil // it does not apply
		}
		e = *e.Replaced
	}
	if why := tx.Ex.Decisions.Verify(e.Statement(tx.Run.UID), e.Proof, tx.Now); why != nil {
		return why, nil
	}
	strong := tx.Ex.Strong
	if strong == nil ||
		!strong.Rules.Always && !strong.Rules.Need(strongCall(in.Tool, in.Ruling, nil, in.Targets, in.Args)) {
		return nil, nil
	}
	return checkPasskey(tx, e.Card(tx.Run.UID), e.Passkey, e.Proof)
}

// checkPlan checks the signature of the confirmation that contains the plan's grants, and the passkey if the grants or
// the call need one.
func checkPlan(tx *unit.Tx, t *tool.Tool, args json.RawMessage) (unproven, err error) {
	by := tx.State.Plan.Confirmed
	a := tx.State.Action(by.ActionID)
	if tx.Ex.Decisions == nil {
		return nil, nil
	}
	if a == nil {
		return decision.ErrForged, nil
	}
	confirmed := *a
	confirmed.Place = by.Place
	covers := run.PlanCovers{Hash: by.Hash, Strict: by.Strict, Grants: by.Plan.Grants}
	s := tx.Run.Decided(&confirmed, by.Hash, covers)
	if why := tx.Ex.Decisions.Verify(s, a.Proof, tx.Now); why != nil {
		return why, nil
	}
	needed, err := needsPasskey(tx, t, "", args)
	if err != nil || !needed && (tx.Ex.Strong == nil || !tx.Ex.Strong.Rules.Grants) {
		return nil, err
	}
	return checkPasskey(tx, s, a.Passkey, a.Proof)
}

// CodeForged is the error code of a call whose stored decision is forged.
const CodeForged fault.Code = RuleForged

// The rules that the audit names for a permission that did not count.
const (
	RuleForged   = "forged_decision"
	RuleUnsigned = "unsigned_decision"
	RulePasskey  = "passkey_missing"
)

// NoteUnproven records that a permission of the call did not count because of its signature. A forged one is logged for
// the operator's alert.
func NoteUnproven(tx *unit.Tx, a *run.Action, reasons ...error) {
	for _, why := range reasons {
		rule := RuleUnsigned
		if errors.Is(why, passkey.ErrMissing) {
			rule = RulePasskey
		}
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
