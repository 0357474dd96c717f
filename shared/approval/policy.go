package approval

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
)

// NeedsApproval reports whether the user must approve the call. A call that users make themselves needs it only where
// the policy asks for every call.
func NeedsApproval(v Judgement, userInitiated bool) bool {
	return v.Mode == policy.RequireApproval && (!userInitiated || v.Rule == policy.RuleAskedForAll)
}

// Judgement is the policy's decision about a call, and what its tool said of it, if that rules on each call.
type Judgement struct {
	policy.Decision
	Ruling *tool.Ruling
}

// ruleUnknown is the rule that denies a call of which its tool cannot say what it does.
const ruleUnknown = "unknown"

// Verdict evaluates the policy, with the user's own allowlist and what the tool says of this one call.
func Verdict(tx *journal.Tx, t *tool.Tool, args json.RawMessage) (Judgement, error) {
	u, err := tx.User()
	if err != nil {
		return Judgement{}, err
	}
	targets, err := t.Targets(args)
	if err != nil {
		return Judgement{}, err
	}
	ruling, unruled, missing := journal.RuleIn(tx, t, args)
	switch {
	case missing != nil:
		return Judgement{}, missing
	case unruled != nil:
		tx.Ex.LogPanic(context.Background(), "", unruled)
		return Judgement{Decision: policy.Decision{Mode: policy.Deny, Rule: ruleUnknown,
			Reason: fault.As(unruled).Message}}, nil
	}
	in := policy.Input{UID: tx.Run.UID, Tool: t.Spec, Ruling: ruling, Args: args, Targets: targets,
		Allowlist: u.Allow, Now: tx.Now}
	if its := tx.Ex.Agents.Get(tx.Run.Agent); its != nil { // where it is gone, nothing is allowed that it would ask
		in.Tool, in.Effects = its.Spec(t), its.Effects
		if ruling != nil && ruling.Mode == tool.RuleAllow && slices.Contains(its.Ask, t.Name) {
			ruling.Mode = tool.RuleAsk
		}
	}
	return Judgement{tx.Ex.Rules.Decide(in), ruling}, nil
}
