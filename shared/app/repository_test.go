package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// TestRepositoryContextBounded checks the limit of 32 KiB (the file paths get the rest of it), and that no file name
// can pass for the heading of open issues.
func TestRepositoryContextBounded(t *testing.T) {
	w := deploy(t)
	long := strings.Repeat("é", 40<<10)
	seed := fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"}, Description: long,
		Files: map[string]string{"README.md": long, "AGENT.md": long, "Open issues:": "x"}}
	for i := range 1900 {
		seed.Files[fmt.Sprintf("a/folder/%04d.go", i)] = "x"
	}
	for i := range 40 {
		seed.Issues = append(seed.Issues, fakegithub.SeedIssue{Author: "eve", Title: fmt.Sprint("Nr ", i, long)})
	}
	w.GitHub.Add(seed)
	w.linkGitHub("ana", "ana")
	told, err := w.App.API.Plans.Repository(t.Context(), "ana", "github.com/acme/web")
	state := told.State
	if err != nil || told.Private || len(state) > 32<<10 || len(state) < 30<<10 || !utf8.ValidString(state) {
		t.Fatalf("%d bytes are told, %v", len(state), err)
	}
	own, open := run.Session{State: state}.Parts()
	if strings.Count(open, "Nr ") != 30 || strings.Contains(own, "Nr ") || strings.Count(state, "\na/folder/") < 200 ||
		!strings.Contains(state, "\n[…]\n\nREADME.md, the first 6144 of 81920 bytes:\né") ||
		!strings.Contains(state, "\nAGENT.md, the first 10240 of 81920 bytes:\né") {
		t.Errorf("of %d issues and %d files is told: %.3000s", strings.Count(open, "Nr "),
			strings.Count(state, "\na/folder/"), state)
	}
}

// TestPlanAtGitHub confirms a plan over HTTP. Its grant covers one issue, which is opened exactly once with the user's
// account; the second issue needs approval. A revoked grant, or one for another account, covers nothing.
func TestPlanAtGitHub(t *testing.T) {
	for _, since := range []string{"", "revoked", "linked"} {
		w, s := plannedIssues(t)
		path := "/" + s.SessionID
		if s.Status != plan.StatusAwaiting || len(s.Grants) != 1 || s.Approvals[0].Preview.Fields[0].Value != "ana" {
			t.Fatalf("it was planned as %+v", s)
		}
		w.plans(&s, path+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
		want := 1
		switch since {
		case "linked":
			want = 0
			w.linkGitHub("ana", "bea")
		case "revoked":
			want = 0
			if a := w.call("DELETE", "/api/agent/plans"+path+"/grants/"+s.Grants[0].ID, ""); a.HTTP != 200 {
				t.Fatalf("%d %s; want a.HTTP 200", a.HTTP, a.Body)
			}
		}
		w.deliver()
		w.plans(&s, path, "")
		if n := len(w.GitHub.View()[0].Issues); n != want || s.Status != plan.StatusExecuting ||
			len(s.Approvals) != 1 || s.Approvals[0].Tool != "github.createIssue" {
			t.Errorf("%s: %d issues were opened, and it stands as %+v", since, n, s)
		}
		for _, i := range w.GitHub.View()[0].Issues {
			if i.Author != "ana" {
				t.Errorf("%s has opened the issue", i.Author)
			}
		}
	}
}

// plannedIssues returns a deployment in which ana's plan waits: it opens two issues, and its grant covers one.
func plannedIssues(t *testing.T) (w *proved, s planner.Session) {
	t.Helper()
	w = deploy(t)
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana", "bea"},
		Files: map[string]string{"README.md": "A site."}})
	w.linkGitHub("ana", "ana")
	w.SetModel(opensIssues)
	w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues","repoUrl":"%s/acme/web","deadline":%q}`,
		w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
	w.plans(&s, "/"+s.SessionID, "")
	return w, s
}

// plans sends a request about plans, decodes the answer, and advances the session as far as it goes.
func (w *proved) plans(s *planner.Session, path, body string) {
	w.t.Helper()
	method := "POST"
	if body == "" {
		w.deliver()
		method = "GET"
	}
	a := w.call(method, "/api/agent/plans"+path, body)
	if err := json.Unmarshal(a.Body, s); err != nil || a.HTTP >= 300 {
		w.t.Fatalf("%v %d %s", err, a.HTTP, a.Body)
	}
}

// opensIssues is a model that plans to open an issue, and opens one after the other.
func opensIssues(r fakegemini.Request) fakegemini.Turn {
	repo := map[string]any{"owner": "acme", "repo": "web"}
	if r.Has("propose_plan") {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "propose_plan", Args: map[string]any{
			"tasks": []any{map[string]any{"title": "Open them", "goal": "They are open.",
				"tools": []string{"github.createIssue"}, "effects": []string{"github.createIssue"}}},
			"grants": []any{map[string]any{"tool": "github.createIssue", "target": repo, "maxCalls": 1}}}}}}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "github.createIssue", Args: map[string]any{"owner": "acme",
		"repo": "web", "title": fmt.Sprint("Broken ", len(r.Contents)), "reasoning": "It is wanted."}}}}
}
