package agent_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent"
)

func TestIDs(t *testing.T) {
	run := agent.KeyedRunID("ana", "k")
	for _, id := range []string{run, agent.NewThreadID(run), agent.ActionID(run, 1, 0, 0), agent.ApprovalID(run, 12)} {
		if !agent.ValidID(id) {
			t.Errorf("%q is not an id", id)
		}
	}
	if got, ok := agent.RunOfApproval(agent.ApprovalID(run, 12)); !ok || got != run {
		t.Errorf("%q %v", got, ok)
	}
	for _, bad := range []string{"", "-", "x-1", run, run + "-", run + "-x", "../" + run + "-1"} {
		if got, ok := agent.RunOfApproval(bad); ok {
			t.Errorf("%q is an approval of %q", bad, got)
		}
	}
	seen := map[string]bool{run: true}
	for _, id := range []string{agent.KeyedRunID("eve", "k"), agent.KeyedRunID("ana", "l"),
		agent.KeyedRunID("an", "ak"), agent.NewThreadID(run),
		agent.ActionID(run, 1, 0, 0), agent.ActionID(run, 0, 1, 0), agent.ActionID(run, 1, 0, 1)} {
		if seen[id] {
			t.Errorf("two things are called %q", id)
		}
		seen[id] = true
	}
}
