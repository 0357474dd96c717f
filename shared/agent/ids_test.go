package agent_test

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent"
)

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(10, 50).Draw(t, "n")
		got := agent.Cut(s, n)
		if len(got) > n || !utf8.ValidString(got) || len(s) <= n && got != s {
			t.Fatalf("%q cut to %d is %q", s, n, got)
		}
	})
}

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
