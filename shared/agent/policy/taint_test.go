package policy_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// declared is a tool whose operator declared that it needs no approval.
var declared = tool.Spec{Name: "x", SideEffect: true, Approval: tool.NotRequired}

// judged is a call with its decision, which uses no always-allow entry and no grant.
type judged struct {
	in   policy.Input
	mode policy.Mode
	rule string
}

func (j judged) check(t *testing.T, name string) {
	t.Helper()
	d := policy.Rules{}.Decide(j.in)
	if d.Mode != j.mode || d.Rule != j.rule || len(d.Entries) > 0 || d.Grant != "" {
		t.Errorf("%s: %+v, want %s by %s", name, d, j.mode, j.rule)
	}
}

// TestRepeated checks calls that repeat an equal one. Neither an allowlist, nor a grant, nor an agent that never asks
// allows them. Tools that the operator declared to need no approval still need none.
func TestRepeated(t *testing.T) {
	for name, tt := range map[string]judged{
		"allowlist": {policy.Input{Tool: mail, Targets: tool.Addresses([]string{"a@example.com"}),
			Allowlist: allow("a@example.com")}, policy.RequireApproval, policy.RuleRepeated},
		"grant": {policy.Input{Tool: mail, Grant: "g1"}, policy.RequireApproval, policy.RuleRepeated},
		"headless": {policy.Input{Tool: mail, Effects: policy.AutoApprove}, policy.RequireApproval,
			policy.RuleRepeated},
		"a look":    {policy.Input{Tool: lookup}, policy.Allow, policy.RuleReadOnly},
		"declared":  {policy.Input{Tool: declared}, policy.Allow, policy.RuleNotRequired},
		"asks else": {policy.Input{Tool: mail}, policy.RequireApproval, policy.RuleNoRecipient},
	} {
		tt.in.UID, tt.in.Now, tt.in.Repeated = uid, now, "You already did exactly this at 10:04."
		tt.check(t, name)
	}
}

// TestTainted checks calls that carry text from strangers. No grant and no allowlist allows them, denials stay denials,
// and tools that the operator declared to need no approval still need none.
func TestTainted(t *testing.T) {
	for name, tt := range map[string]judged{
		"allowlist": {policy.Input{Tool: mail, Targets: tool.Addresses([]string{"a@example.com"}),
			Allowlist: allow("a@example.com")}, policy.RequireApproval, policy.RuleTainted},
		"grant":     {policy.Input{Tool: mail, Grant: "g1"}, policy.RequireApproval, policy.RuleTainted},
		"a look":    {policy.Input{Tool: lookup}, policy.RequireApproval, policy.RuleTainted},
		"declared":  {policy.Input{Tool: declared}, policy.Allow, policy.RuleNotRequired},
		"headless":  {policy.Input{Tool: mail, Effects: policy.AutoApprove}, policy.Allow, policy.RuleNonInteractive},
		"planning":  {policy.Input{Tool: mail, Grant: "g1", ReadsOnly: true}, policy.Deny, policy.RulePlanning},
		"asks else": {policy.Input{Tool: mail}, policy.RequireApproval, policy.RuleNoRecipient},
		"malformed": {policy.Input{Tool: mail, Targets: tool.Addresses([]string{"x"})}, policy.Deny,
			policy.RuleMalformed},
	} {
		tt.in.UID, tt.in.Now, tt.in.Tainted = uid, now, true
		tt.check(t, name)
	}
}
