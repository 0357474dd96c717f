package app_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// TestTheModelSeesChecksAndReviews reads a failed check with the end of its output, and a comment on a line.
func TestTheModelSeesChecksAndReviews(t *testing.T) {
	w := deploy(t)
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "A site."}, Branches: map[string]string{"fix": "b"},
		Pulls: []fakegithub.SeedPull{{Author: "ana", Title: "Fix", Head: "fix", Base: "main"}}})
	w.GitHub.AddCheck("acme", "web", "fix", fakegithub.Check{Name: "test", Status: "completed", Conclusion: "failure",
		Text: strings.Repeat("ok\n", 1000) + "FAIL: TestLink\n"})
	w.GitHub.AddReview("acme", "web", 1, fakegithub.Review{Author: "zoe", Path: "fix", Line: 1, Body: "Which link?"})
	if err := w.LinkGitHub(t.Context(), "ana", "ana"); err != nil {
		t.Fatal(err)
	}
	look := func(name string, more map[string]any) func(string) (string, map[string]any) {
		more["owner"], more["repo"] = "acme", "web"
		return func(string) (string, map[string]any) { return name, more }
	}
	s := &steps{tools: []string{"github.listChecks", "github.listReviewComments"},
		calls: []func(string) (string, map[string]any){look("github.listChecks", map[string]any{"ref": "fix"}),
			look("github.listReviewComments", map[string]any{"prNumber": 1})}}
	w.carriedOut(s)
	if len(s.told) < 2 || !strings.Contains(s.told[0], `"state":"failure"`) ||
		!strings.Contains(s.told[0], `\nFAIL: TestLink"`) || !strings.Contains(s.told[1], `"body":"Which link?"`) {
		t.Errorf("the model sees %.3000q", s.told)
	}
}
