package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// confirm returns the passkey's confirmation of a decision with its entries, or nil if the decision needs none. It
// changes nothing. Errors: PolicyError passkey_required, passkey_missing, passkey_refused.
func confirm(tx *unit.Tx, ap *run.Approval, d *run.Decided, r Resolution, args json.RawMessage,
	entries []policy.Entry) (*passkey.Confirmation, error) {
	strong := tx.Ex.Strong
	if strong == nil || !d.Decision.Permits() {
		return nil, nil
	}
	covers, err := planCovers(ap, args, d.ArgsHash, r.Strict)
	if err != nil {
		return nil, err
	}
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, ap.Tool)
	if needed, err := decisionNeeds(tx, t, d.Decision, args, covers); err != nil || !needed {
		return nil, err
	}
	set := &passkey.Set{}
	if _, err := tx.Doc(document.PasskeysPath(tx.Run.UID), set); err != nil {
		return nil, err
	}
	cards := []decision.Statement{tx.Run.Deciding(tx.State.Action(ap.ActionID), d, covers)}
	for _, e := range entries {
		cards = append(cards, e.Card(tx.Run.UID))
	}
	challenge, hashes, err := passkey.Challenge(tx.Ex.Decisions, cards...)
	if err != nil {
		return nil, err
	}
	if r.Passkey == nil {
		return nil, askForPasskey(tx, ap.ID, set, challenge)
	}
	a := *r.Passkey
	if a.Batch = nil; len(hashes) > 1 {
		a.Batch = hashes
	}
	before, err := strong.Accept(set, tx.Run.UID, &a, challenge, tx.Now)
	if err != nil {
		tx.Ex.Log.WarnContext(context.Background(), "a passkey's answer was refused", "counter", "passkey_refused",
			"runId", tx.Run.ID, "approvalId", ap.ID, "error", err)
		return nil, fault.New(fault.Policy, fault.CodePasskeyRefused,
			"The passkey's answer does not confirm this decision. Please try again.").Because(err)
	}
	return &passkey.Confirmation{Assertion: &a, Counter: before, Set: set}, nil
}

// askForPasskey returns the error that asks for a passkey, or for the enrolment of one.
func askForPasskey(tx *unit.Tx, approvalID string, set *passkey.Set, challenge []byte) error {
	strong := tx.Ex.Strong
	enrolled := strong.Enrolled(set, tx.Run.UID)
	needed := &passkey.Needed{Origin: strong.Site.Origin}
	if len(enrolled) == 0 {
		needed.Link = strong.Site.Console + "/#/passkeys"
		return fault.New(fault.Policy, fault.CodePasskeyMissing, "This decision needs a passkey, and you have none. "+
			"Add one in the console: %s", needed.Link).Because(needed)
	}
	needed.Options = strong.Ask(challenge, enrolled)
	needed.Link = strong.Site.Console + "/#/approvals/" + approvalID
	return fault.New(fault.Policy, fault.CodePasskeyRequired, "This decision needs your passkey. Decide in the "+
		"console: %s", needed.Link).Because(needed)
}

// AsksForPasskey reports whether the error only asks for a passkey. The decision was not refused.
func AsksForPasskey(err error) bool {
	var needed *passkey.Needed
	return errors.As(err, &needed)
}

// planCovers returns what the confirmation of a plan permits, or nil for an approval of another kind.
func planCovers(ap *run.Approval, args json.RawMessage, hash string, strict bool) (any, error) {
	if ap.Kind != run.KindPlan {
		return nil, nil
	}
	covers, err := run.CoversOf(args, hash, strict)
	if err != nil {
		return nil, err
	}
	return covers, nil
}

// passkeyFor returns the decisions of the card that need a passkey.
func passkeyFor(tx *unit.Tx, ap *run.Approval, t *tool.Tool) (all []run.Decision, err error) {
	if tx.Ex.Strong == nil {
		return nil, nil
	}
	covers, err := planCovers(ap, ap.Args, ap.ArgsHash, false)
	if err != nil {
		return nil, err
	}
	for _, d := range ap.Decisions {
		needed, err := decisionNeeds(tx, t, d, ap.Args, covers)
		if err != nil {
			return nil, err
		}
		if needed && d.Permits() {
			all = append(all, d)
		}
	}
	return all, nil
}

// decisionNeeds reports whether a decision that permits something needs a passkey. covers is what the confirmation of a
// plan permits, or nil.
func decisionNeeds(tx *unit.Tx, t *tool.Tool, d run.Decision, args json.RawMessage, covers any) (bool, error) {
	if p, is := covers.(run.PlanCovers); is && tx.Ex.Strong.Rules.Grants && len(p.Grants) > 0 {
		return true, nil
	}
	return needsPasskey(tx, t, d, args)
}

// needsPasskey reports whether the decision about the call needs a passkey by the operator's rules. A user's own call
// has no decision.
func needsPasskey(tx *unit.Tx, t *tool.Tool, d run.Decision, args json.RawMessage) (bool, error) {
	strong := tx.Ex.Strong
	if strong == nil || t == nil {
		return false, nil
	}
	if strong.Rules.Always && storesEntries(d) {
		return true, nil
	}
	if len(strong.Rules.Calls) == 0 {
		return false, nil
	}
	targets, err := t.Targets(args)
	if err != nil {
		return false, err
	}
	ruling, unruled, missing := tx.RuleIn(t, args)
	if missing != nil {
		return false, missing
	}
	return strong.Rules.Need(strongCall(t.Spec, ruling, unruled, targets, args)), nil
}

// strongCall returns the call as the operator's rules see it. A call on which its tool cannot rule is opaque.
func strongCall(spec tool.Spec, ruling *tool.CallPolicy, unruled error, targets []tool.Target,
	args json.RawMessage) passkey.Call {
	c := passkey.Call{Tool: spec.Name, Class: spec.Class, Targets: targets, Args: args}
	switch {
	case unruled != nil:
		c.Class = tool.ClassOpaque
	case ruling != nil:
		c.Class = cmp.Or(ruling.Class, spec.Class)
	}
	return c
}

// checkPasskey checks that a passkey confirmed the statement of a stored permission whose signature is proof. The
// commit depends on the user's passkeys. unproven is [passkey.ErrMissing] or [decision.ErrForged].
func checkPasskey(tx *unit.Tx, s decision.Statement, a *passkey.Assertion, proof *decision.Signature) (unproven,
	err error) {
	set, path := &passkey.Set{}, document.PasskeysPath(tx.Run.UID)
	if proof == nil || a == nil {
		return passkey.ErrMissing, nil
	}
	if _, err := tx.Doc(path, set); err != nil {
		return nil, err
	}
	switch why := tx.Ex.Strong.CheckStored(set, s, a, proof.Auth, tx.Ex.Decisions); {
	case errors.Is(why, passkey.ErrMissing):
		return why, nil
	case why != nil:
		return fmt.Errorf("%w: %w", decision.ErrForged, why), nil
	}
	tx.AddPrecondition(path)
	return nil, nil
}
