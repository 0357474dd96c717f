package app_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/planner"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// TestTheDaysCapStopsNoPlan has a user use the planner's approvals of a day up with plans: they may still begin a plan
// and read it, and nothing else is asked of them.
func TestTheDaysCapStopsNoPlan(t *testing.T) {
	w := deploy(t, "MAX_APPROVALS_PER_DAY=2", "PLAN_MAX_ASKS=2", "MAX_OPEN_APPROVALS=0")
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "A site."}})
	if err := w.LinkGitHub(t.Context(), "ana", "ana"); err != nil {
		t.Fatal(err)
	}
	w.SetModel(opensIssues)
	var s planner.Session
	for n := range 4 {
		w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues, try %d","repoUrl":"%s/acme/web","deadline":%q}`, n,
			w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
		if w.plans(&s, "/"+s.SessionID, ""); s.Status != plan.StatusAwaiting {
			t.Fatalf("plan %d is %s: %s", n, s.Status, s.Summary)
		}
	}
	w.plans(&s, "/"+s.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
	w.plans(&s, "/"+s.SessionID, "")
	asked := slices.ContainsFunc(s.Approvals, func(a run.ApprovalView) bool { return a.Tool == "github.createIssue" })
	if n := len(w.GitHub.View()[0].Issues); n != 1 || asked {
		t.Errorf("%d issues were opened by the grant; another one is asked about: %t", n, asked)
	}
}
