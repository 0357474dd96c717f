package trial

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// TestTestsOfCases checks that the tests of a package run once, and that a case is covered only if all its
// tests passed.
func TestTestsOfCases(t *testing.T) {
	cases := []Case{{Number: "1", Tests: []string{"a: TestOne", "b: TestParts/first"}},
		{Number: "2", Tests: []string{"a: TestTwo"}}, {Number: "3", Tests: []string{"b: TestParts/second"}},
		{Number: "4", Tests: []string{"c: TestThree"}}}
	var asked []string
	held := tests{cases: cases, went: map[selection]proof.Tested{}, run: func(_ context.Context, folder,
		pattern string) proof.Tested {
		asked = append(asked, folder+" "+pattern)
		return map[string]proof.Tested{"a": {Failed: true, By: []string{"TestTwo"}},
			"b": {Skipped: true, Left: []string{"TestParts/second"}},
			"c": {Failed: true, Said: []string{"no package"}}}[folder]
	}}
	for i, want := range []string{heldBy, failed, byTests, failed} {
		if row := held.at(t.Context(), cases[i]); row.Verdict != want {
			t.Errorf("case %s: %s %s", cases[i].Number, row.Verdict, row.Got)
		}
	}
	const want = "a ^(TestOne|TestTwo)$; b ^TestParts$/^(first|second)$; c ^(TestThree)$"
	if got := strings.Join(asked, "; "); got != want {
		t.Errorf("what was run: %s", got)
	}
}
