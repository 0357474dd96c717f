package policy_test

import (
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
)

// A decision depends only on its input: the operator's rules, the call, and the user's always-allow list.
func ExampleRules_Decide() {
	denied, err := address.ParsePatterns("*.example.net")
	if err != nil {
		panic(err)
	}
	rules := policy.Rules{Denied: denied}
	now := time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)
	mail := tool.Spec{Name: "gmail_send", SideEffect: true, Approval: tool.Required}
	always, err := rules.Entries("ana", mail.Name, tool.Place{}, tool.Addresses([]string{"bob@example.com"}), now)
	if err != nil {
		panic(err)
	}
	for _, to := range []string{"bob@example.com", "eve@example.com", "x@sub.example.net"} {
		d := rules.Decide(policy.Input{UID: "ana", Tool: mail, Targets: tool.Addresses([]string{to}),
			Allowlist: always, Now: now})
		fmt.Println(to, d.Mode, d.Rule)
	}
	// Output:
	// bob@example.com allow allowlisted
	// eve@example.com require_approval recipient_not_allowlisted
	// x@sub.example.net deny recipient_denied
}
