package infra_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
)

// TestSelect checks which functions are deployed for a choice.
func TestSelect(t *testing.T) {
	core := []string{"run", "stream", "approvals-pending", "approvals-resolve", "resume", "runs", "sweep", "threads",
		"connections"}
	for _, c := range []struct {
		chosen []string
		more   []string // deployed besides the core
	}{
		{chosen: nil, more: nil},
		{chosen: []string{"core", "run"}, more: nil},
		{chosen: []string{"page"},
			more: []string{"web", "allowlist", "audit", "chat", "chat-results", "actions", "ui", "agui", "files"}},
		{chosen: []string{"terminals"}, more: []string{"terminals", "terminal-attach", "resume-terminal"}},
		{chosen: []string{"plans", "web"}, more: []string{"plans", "resume-plan", "web"}},
		{chosen: []string{"mcp"}, more: []string{"mcp", "web", "allowlist"}},
	} {
		got, err := list(t).Select(c.chosen)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(slices.Values(append(slices.Clone(core), c.more...)))
		if names := sortedNames(got); !slices.Equal(names, want) {
			t.Errorf("%q deploys %q, want %q", c.chosen, names, want)
		}
	}
	if got, err := list(t).Select([]string{"all"}); err != nil || len(got) != len(list(t).Functions) {
		t.Errorf("all deploys %q: %v", sortedNames(got), err)
	}
	_, err := list(t).Select([]string{"page", "planner"})
	if err == nil || !strings.Contains(err.Error(), "unknown function planner: the profiles are core, page and all") {
		t.Errorf("an unknown function: %v", err)
	}
}

// TestProfilesOfThePage checks the numbers of functions on the page about deployments.
func TestProfilesOfThePage(t *testing.T) {
	page := string(text(t, "../terraform/options.md"))
	for profile, words := range map[string]string{"core": "deploys the nine functions", "page": "(%d functions)",
		"all": "is every function (%d)"} {
		got, err := list(t).Select([]string{profile})
		if err != nil {
			t.Fatal(err)
		}
		if profile == "core" && len(got) != 9 {
			t.Errorf("core has %d functions, and the page says nine", len(got))
		}
		if words = strings.Replace(words, "%d", strconv.Itoa(len(got)), 1); !strings.Contains(page, words) {
			t.Errorf("terraform/options.md does not say %q of %s", words, profile)
		}
	}
}

func sortedNames(functions []infra.Function) (names []string) {
	for _, f := range functions {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// TestProfilesRefuse checks the errors of a list whose profiles or needs name the wrong functions.
func TestProfilesRefuse(t *testing.T) {
	whole := string(text(t, "functions.json"))
	for _, c := range []struct{ from, to, says string }{
		{`"core": [`, `"core": ["moon", `, `profile "core" names "moon"`},
		{`"core": [`, `"run": [`, `profile "run" has the name of a function`},
		{`"needs": ["plans"]`, `"needs": ["moon"]`, `function "resume-plan" needs "moon"`},
		{`"needs": ["plans"]`, `"needs": ["mcp"]`, `function "resume-plan" needs "mcp", so it must also name "web", which that one needs`},
	} {
		if !strings.Contains(whole, c.from) {
			t.Fatalf("functions.json has no %s", c.from)
		}
		_, err := infra.Parse([]byte(strings.Replace(whole, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.to, err, c.says)
		}
	}
}
