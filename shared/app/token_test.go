package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// TestGitHubTokenSetting covers GITHUB_TOKEN from the API to GitHub: ana plans and opens an issue in the token's
// account without linking one, whether or not users can link accounts. ben has to link one.
func TestGitHubTokenSetting(t *testing.T) {
	for name, app := range map[string]struct {
		settings []string
		way      string // the reason that ben gets
	}{"beside an App": {way: "Please link one first."},
		"without one": {settings: []string{"GITHUB_CLIENT_ID=", "GITHUB_CLIENT_SECRET="}, way: "GITHUB_CLIENT_ID"}} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"octo-cat"},
				Files: map[string]string{"README.md": "A site."}})
			token := w.GitHubApp.Token("octo-cat")
			if err := errors.Join(w.Stop(), w.Start(t.Context(), testkit.Options{Dir: t.TempDir(),
				Settings: append(app.settings, "GITHUB_TOKEN="+token, "GITHUB_TOKEN_USER=ana")})); err != nil {
				t.Fatal(err)
			}
			if a := w.startPlan("ben"); a.HTTP != http.StatusForbidden || !strings.Contains(string(a.Body), app.way) {
				t.Errorf("ben is answered %d %s", a.HTTP, a.Body)
			}
			if got := w.given("ben"); got != nil {
				t.Errorf("ben has %+v", got)
			}
			w.SetModel(opensIssues)
			started := w.startPlan("ana")
			var s planner.Session
			if err := json.Unmarshal(started.Body, &s); err != nil || started.HTTP != http.StatusAccepted {
				t.Fatalf("ana is answered %d %s (%v)", started.HTTP, started.Body, err)
			}
			w.plans(&s, "/"+s.SessionID, "")
			w.plans(&s, "/"+s.SessionID+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
			w.deliver()
			if got := w.GitHub.View()[0].Issues; len(got) != 1 || got[0].Author != "octo-cat" {
				t.Errorf("there are %+v", got)
			}
			if got := w.given("ana"); got == nil || got.Status != "linked" || got.Login != "octo-cat" ||
				!got.LinkedAt.IsZero() {
				t.Errorf("ana has %+v", got)
			}
			w.GitHubApp.RevokeAll("octo-cat")
			if got := w.given("ana"); got == nil || got.Status != "broken" || got.Login != "" {
				t.Errorf("with a token that is not accepted ana has %+v", got)
			}
			if a := w.startPlan("ana"); a.HTTP != http.StatusForbidden ||
				!strings.Contains(string(a.Body), "GITHUB_TOKEN") || strings.Contains(string(a.Body), token) {
				t.Errorf("then ana is answered %d %s", a.HTTP, a.Body)
			}
			w.plans(&s, "/"+s.SessionID, "")
			if logs := w.Logs.String(); s.Status != plan.StatusExecuting || strings.Contains(logs, token) {
				t.Errorf("it stands as %s, and the token is in the log: %t", s.Status, strings.Contains(logs, token))
			}
		})
	}
}

// startPlan starts a session of the user's about acme/web.
func (w *proved) startPlan(uid string) testkit.Answer {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "POST", "/api/agent/plans", fmt.Sprintf(
		`{"prompt":"open issues","repoUrl":"%s/acme/web","deadline":%q}`,
		w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// given returns the user's listed account that was not linked.
func (w *proved) given(uid string) *linking.Connection {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "GET", "/api/agent/connections", "")
	var list struct{ Connections []linking.Connection }
	if err = errors.Join(err, json.Unmarshal(a.Body, &list)); err != nil || strings.Contains(string(a.Body), "ghu_") {
		w.t.Fatalf("%v: %s", err, a.Body)
	}
	for _, c := range list.Connections {
		if c.Source == "GITHUB_TOKEN" && c.Provider == "github" {
			return &c
		}
	}
	return nil
}
