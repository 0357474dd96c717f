package shell_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// spelledOut returns the distinct lines of a file in testdata, with alternatives in braces expanded.
func spelledOut(t *testing.T, name string) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, line := range linesOf(t, name) {
		for _, command := range spellOut(line) {
			if !seen[command] {
				seen[command] = true
				all = append(all, command)
			}
		}
	}
	return all
}

// runsUnasked reports whether a line runs without approval on a host that allows it.
func runsUnasked(command string) bool {
	j, err := shell.Judge(command, shell.Bash)
	return err == nil && (j.Class == shell.ReadOnly || j.Repository != nil)
}

// TestChangingLinesAsked judges testdata/changing.txt: lines that change, send, run something else, or wait. None runs
// without approval.
func TestChangingLinesAsked(t *testing.T) {
	t.Parallel()
	all := spelledOut(t, "changing.txt")
	if len(all) < 20_000 {
		t.Errorf("%d lines, want 20,000 or more", len(all))
	}
	for _, command := range all {
		if runsUnasked(command) {
			t.Errorf("%q would run without approval", command)
		}
	}
}

// TestOneLiners checks the share of testdata/oneliners.txt that runs without approval. The lines only read. Some of
// them ask a server, wait for keys, or have a part that only the shell knows. No line gets a warning about destruction.
func TestOneLiners(t *testing.T) {
	t.Parallel()
	all, run := spelledOut(t, "oneliners.txt"), 0
	for _, command := range all {
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Has(shell.Destructive) {
			t.Errorf("%q is %s: %+v (%v)", command, j.Class, j.Warnings, err)
		}
		if runsUnasked(command) {
			run++
		}
	}
	if t.Logf("%d of %d lines run", run, len(all)); len(all) < 4_000 || run*100 < 60*len(all) {
		t.Errorf("%d of %d lines run without approval, want 60 %% of 4,000 or more", run, len(all))
	}
}
