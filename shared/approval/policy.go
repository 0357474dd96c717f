package approval

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
)

// NeedsApproval reports whether the user must approve the call. A call that users make themselves needs it only where
// the policy asks for every call.
func NeedsApproval(v policy.Decision, userInitiated bool) bool {
	return v.Mode == policy.RequireApproval && (!userInitiated || v.Rule == policy.RuleAskedForAll)
}

// Verdict evaluates the policy, with the user's own allowlist.
func Verdict(tx *journal.Tx, t *tool.Tool, args json.RawMessage) (policy.Decision, error) {
	u, err := tx.User()
	if err != nil {
		return policy.Decision{}, err
	}
	targets, err := t.Targets(args)
	if err != nil {
		return policy.Decision{}, err
	}
	in := policy.Input{UID: tx.Run.UID, Tool: t.Spec, Args: args, Targets: targets, Allowlist: u.Allow, Now: tx.Now}
	if its := tx.Ex.Agents.Get(tx.Run.Agent); its != nil { // where it is gone, nothing is allowed that it would ask
		in.Tool, in.Effects = its.Spec(t), its.Effects
	}
	return tx.Ex.Rules.Decide(in), nil
}
