package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestPlanBeyondDailyCap starts more plans than the daily limit of approvals. They do not count. Then the calls of the
// plans use the limit up. The user can still start and read a plan. The plan's calls are refused, and the message says
// when the next is possible.
func TestPlanBeyondDailyCap(t *testing.T) {
	w := deploy(t, "MAX_APPROVALS_PER_DAY=2", "PLAN_MAX_ASKS=2", "MAX_OPEN_APPROVALS=0")
	w.addSite()
	w.SetModel(opensIssues)
	var s planner.Session
	for n := range 4 {
		w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues, try %d","repoUrl":"%s/acme/web","deadline":%q}`, n,
			w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
		if w.plans(&s, "/"+s.SessionID, ""); s.Status != plan.StatusAwaiting {
			t.Fatalf("plan %d is %s: %s", n, s.Status, s.Summary)
		}
	}
	var listed struct{ Sessions []planner.Listed }
	w.decode("GET", "/api/agent/plans", &listed)
	for n, of := range listed.Sessions[:3] {
		w.plans(&s, "/"+of.SessionID, "")
		w.plans(&s, "/"+of.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
		w.plans(&s, "/"+of.SessionID, "")
		asked := slices.ContainsFunc(s.Approvals, func(a run.ApprovalView) bool {
			return a.Tool == "github.createIssue"
		})
		if opened := len(w.GitHub.View()[0].Issues); opened != n+1 || asked != (n < 2) {
			t.Errorf("plan %d: %d issues were opened by grants; another one is asked about: %t", n, opened, asked)
		}
	}
	if !strings.Contains(s.Tasks[0].RawReactHistory, "which is the limit. More is possible from") {
		t.Errorf("the model was told %.2000s", s.Tasks[0].RawReactHistory)
	}
}

// TestPlanWithEmptyGrant plans a grant of commits to no file, and of an issue without a number. The model learns which
// argument is missing, and no user sees the plan.
func TestPlanWithEmptyGrant(t *testing.T) {
	repo := map[string]any{"owner": "acme", "repo": "web"}
	with := func(more map[string]any) map[string]any {
		maps.Copy(more, repo)
		return more
	}
	for name, c := range map[string]struct {
		tool   string
		target map[string]any
		says   string // empty: the plan is shown
	}{
		"commits to no file": {"github.commitFiles", with(map[string]any{"branch": "main"}), "grants/0/target/files"},
		"no issue": {"github.updateIssue", with(map[string]any{"updates": map[string]any{}}),
			"grants/0/target/issueNumber"},
		"commits to a file": {"github.commitFiles", with(map[string]any{"branch": "main",
			"files": []any{map[string]any{"path": "a.txt"}}}), ""},
		"an issue": {"github.updateIssue", with(map[string]any{"issueNumber": 1, "updates": map[string]any{}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.addSite()
			told := make(chan string, 100)
			grant := map[string]any{"tool": c.tool, "target": c.target, "maxCalls": 1}
			w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
				if all := r.Responses(); len(all) > 0 {
					told <- string(all[len(all)-1].Response)
				}
				return (&steps{grants: []any{grant}}).turn(r)
			})
			var s planner.Session
			w.plans(&s, "", fmt.Sprintf(`{"prompt":"do it","repoUrl":"%s/acme/web","deadline":%q}`,
				w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
			w.plans(&s, "/"+s.SessionID, "")
			if c.says == "" {
				if s.Status != plan.StatusAwaiting || len(s.Grants) != 1 {
					t.Errorf("it is %s: %s", s.Status, s.Summary)
				}
				return
			}
			if s.Status == plan.StatusAwaiting || len(told) == 0 {
				t.Fatalf("it is %s with %d grants", s.Status, len(s.Grants))
			}
			if why := <-told; !strings.Contains(why, c.says) {
				t.Errorf("the model is told %s", why)
			}
		})
	}
}
