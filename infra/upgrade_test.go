package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUpgradeOrder checks the order in which functions are upgraded. Each function is in the list of what it does with
// the events of runs: the functions that the queue or the scheduler calls continue runs, the other functions with the
// queue write events, and the rest writes none.
func TestUpgradeOrder(t *testing.T) {
	var want [3][]string
	for _, f := range list(t).Functions {
		group := 2
		switch {
		case f.Callers == "queue" || f.Callers == "scheduler":
			group = 0
		case slices.Contains(f.Parts, "queue"):
			group = 1
		}
		want[group] = append(want[group], f.Name)
	}
	lines := regexp.MustCompile(`(?m)^([123])\. the .*functions that .*$`).FindAllString(
		string(text(t, "../shared/store/README.md")), -1)
	if len(lines) != len(want) {
		t.Fatalf("shared/store/README.md has %d lists of the order; want %d", len(lines), len(want))
	}
	for i, line := range lines {
		var got []string
		for _, name := range regexp.MustCompile("`[^`]+`").FindAllString(line, -1) {
			got = append(got, strings.Trim(name, "`"))
		}
		slices.Sort(got)
		slices.Sort(want[i])
		if !slices.Equal(got, want[i]) {
			t.Errorf("list %d of shared/store/README.md has %q; want %q", i+1, got, want[i])
		}
	}
}
