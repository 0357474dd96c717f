package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUpgradeOrder checks that shared/store/README.md lists each function in the step in which it is upgraded.
func TestUpgradeOrder(t *testing.T) {
	var want [3][]string
	for _, f := range list(t).Functions {
		want[f.UpgradeStep()-1] = append(want[f.UpgradeStep()-1], f.Name)
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
