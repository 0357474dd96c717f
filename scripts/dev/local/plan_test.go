package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
)

type planReply struct {
	SessionID, Status, PlanHash, Summary string
	Revision                             int
	Tasks                                []struct{ Title, Goal, Status, Result, Error string }
	Grants                               []struct {
		Tool     string
		Used     int
		MaxCalls int
	}
	Artifacts, Questions []string
}

// plans sends a request about plans, and returns the session when it has finished or waits for its user.
func (u *served) plans(path string, body any) (p planReply) {
	u.t.Helper()
	a, err := testkit.Connect(nil, u.base, u.token)(u.t.Context(), http.MethodPost, "/api/agent/plans"+path, body,
		"Prefer", "wait=60")
	if err != nil || a.HTTP != http.StatusOK || json.Unmarshal(a.Body, &p) != nil {
		u.t.Fatalf("%s: %d %s, %v", path, a.HTTP, a.Body, err)
	}
	return p
}

func (u *served) issues() (titles []string) {
	u.t.Helper()
	var at struct{ Issues []fakegithub.OpenIssue }
	u.call(http.MethodGet, githubPath, nil, &at)
	for _, i := range at.Issues {
		titles = append(titles, i.Title+": "+i.Body)
	}
	return titles
}

// TestPlanFromSentence turns a sentence into a plan, which is refined once and confirmed. The confirmed plan's grant
// lets the issue be created without another approval, and nothing is created before.
func TestPlanFromSentence(t *testing.T) {
	u := serve(t)
	before := u.issues()
	p := u.plans("", map[string]any{
		"prompt":  "plan: fix the broken link of demo/site and open an issue about it, by tonight",
		"repoUrl": u.base + githubPath + "/demo/site", "deadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
	if p.Status != "AWAITING_CONFIRMATION" || len(p.Tasks) != 2 || len(p.Grants) != 1 ||
		p.Grants[0].Tool != "github.createIssue" || p.Grants[0].MaxCalls != 1 {
		t.Fatalf("the plan: %+v", p)
	}
	whole := p.Tasks[1].Goal
	p = u.plans("/"+p.SessionID+"/refine", map[string]any{"refinementPrompt": "make step 2 smaller"})
	if p.Status != "AWAITING_CONFIRMATION" || p.Revision != 2 || len(p.Tasks) != 2 ||
		len(p.Tasks[1].Goal) >= len(whole) {
		t.Fatalf("the refined plan: %+v", p)
	}
	if now := u.issues(); !slices.Equal(now, before) {
		t.Fatalf("issues before the confirmation: %q", now)
	}
	p = u.plans("/"+p.SessionID+"/execute", map[string]any{"planHash": p.PlanHash})
	if p.Status != "COMPLETED" || len(p.Artifacts) != 1 || p.Grants[0].Used != 1 {
		t.Fatalf("the confirmed session: %+v", p)
	}
	now := u.issues()
	if len(now) != len(before)+1 ||
		!strings.HasPrefix(now[len(before)], "Broken link: The README links to docs/start.md, which is not there.") {
		t.Errorf("issues: %q", now)
	}
}

// TestPlanWithSearch plans a search. The task's result is the search's result.
func TestPlanWithSearch(t *testing.T) {
	u := serve(t)
	p := u.plans("", map[string]any{"prompt": "plan: search the web for the harbour",
		"repoUrl": u.base + githubPath + "/demo/site", "deadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
	p = u.plans("/"+p.SessionID+"/execute", map[string]any{"planHash": p.PlanHash})
	if p.Status != "COMPLETED" || len(p.Tasks) != 1 || p.Tasks[0].Result == "" ||
		!strings.HasPrefix(p.Tasks[0].Result, "The web says: ") || strings.Contains(p.Tasks[0].Result, "Nothing") {
		t.Errorf("it ends as %+v", p)
	}
}

// TestPlanWithQuestion expects that a plan for a wish which the demo model does not know has a question.
func TestPlanWithQuestion(t *testing.T) {
	u := serve(t)
	p := u.plans("", map[string]any{"prompt": "plan: translate the site into French",
		"repoUrl": u.base + githubPath + "/demo/site", "deadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
	if len(p.Questions) != 1 || !strings.Contains(p.Questions[0], "does not understand this wish") ||
		len(p.Grants) > 0 {
		t.Errorf("the plan: %+v", p)
	}
}

// TestPlanWithGitHubToken makes the server's user act at another GitHub with GITHUB_TOKEN, without a linked account.
func TestPlanWithGitHubToken(t *testing.T) {
	oauth := fakegithub.NewOAuth(fakegithub.OAuthOptions{Client: fakeoauth.Client{Key: []byte("of this test")}})
	theirs := fakegithub.New(fakegithub.Options{User: oauth.User})
	theirs.Add(fakegithub.Seed{Owner: "acme", Name: "web", Private: true, Writers: []string{"octo-cat"},
		Files: map[string]string{"README.md": "# A site\n"}})
	srv := httptest.NewServer(theirs)
	t.Cleanup(srv.Close)
	for name, value := range map[string]string{"GITHUB_URL": srv.URL, "GITHUB_API_URL": srv.URL,
		"GITHUB_TOKEN": oauth.Token("octo-cat"), "GITHUB_TOKEN_USER": "ana"} {
		t.Setenv(name, value)
	}
	u := serve(t)
	p := u.plans("", map[string]any{"prompt": "plan: search the web for the harbour",
		"repoUrl": srv.URL + "/acme/web", "deadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
	if p.Status != "AWAITING_CONFIRMATION" {
		t.Errorf("it stands as %+v", p)
	}
	var has struct{ Connections []linking.Connection }
	u.call(http.MethodGet, "/api/agent/connections", nil, &has)
	if !slices.ContainsFunc(has.Connections, func(c linking.Connection) bool {
		return c.Source == "GITHUB_TOKEN" && c.Login == "octo-cat" && c.Status == "linked"
	}) {
		t.Errorf("ana has %+v", has.Connections)
	}
}
