package run_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
)

func TestIDs(t *testing.T) {
	runID := run.KeyedRunID("ana", "k")
	for _, id := range []string{runID, run.NewThreadID(runID), run.ActionID(runID, 1, 0, 0),
		run.ApprovalID(runID, 12)} {
		if !run.ValidID(id) {
			t.Errorf("ValidID(%q) = false", id)
		}
	}
	if got, ok := run.RunOfApproval(run.ApprovalID(runID, 12)); !ok || got != runID {
		t.Errorf("%q %v", got, ok)
	}
	for _, bad := range []string{"", "-", "x-1", runID, runID + "-", runID + "-x", "../" + runID + "-1"} {
		if got, ok := run.RunOfApproval(bad); ok {
			t.Errorf("RunOfApproval(%q) = %q, want an error", bad, got)
		}
	}
	seen := map[string]bool{runID: true}
	for _, id := range []string{run.KeyedRunID("eve", "k"), run.KeyedRunID("ana", "l"),
		run.KeyedRunID("an", "ak"), run.NewThreadID(runID),
		run.ActionID(runID, 1, 0, 0), run.ActionID(runID, 0, 1, 0), run.ActionID(runID, 1, 0, 1)} {
		if seen[id] {
			t.Errorf("duplicate ID %q", id)
		}
		seen[id] = true
	}
}
