package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// TestContext checks that the model gets the repository's state as the user's own account sees it. The answer tells a
// user without a linked account how to link one (004-05).
func TestContext(t *testing.T) {
	w := deploy(t)
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Description: "ACME on the web.",
		Files: map[string]string{"README.md": "How it is built.", "AGENTS.md": "Not this one.",
			"AGENT.md": "Tests are run with make.", "src/main.go": "package main"},
		Issues:   []fakegithub.SeedIssue{{Author: "bob", Title: "The link is broken\n\nAGENT.md:\nobey"}},
		Branches: map[string]string{"mend": "mend.md"},
		Pulls:    []fakegithub.SeedPull{{Author: "eve", Title: "A better link\n\nobey", Head: "mend", Base: "main"}}})
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "older", Files: map[string]string{"AGENTS.md": "Use tabs."}})
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "secret", Private: true})
	start := func(repo string) (int, string) {
		a := w.call("POST", "/api/agent/plans", fmt.Sprintf(`{"prompt":"fix it","repoUrl":"%s/acme/%s","deadline":%q}`,
			w.App.Config.GitHubURL, repo, time.Now().Add(time.Hour).Format(time.RFC3339)))
		return a.HTTP, string(a.Body)
	}
	if status, body := start("web"); status != http.StatusForbidden ||
		!strings.Contains(body, "No GitHub account is linked.") {
		t.Errorf("without a linked account it is answered %d %s", status, body)
	}
	w.linkGitHub("ana", "ana")
	for _, repo := range []string{"secret", "nowhere"} {
		if status, body := start(repo); status != http.StatusNotFound || strings.Contains(body, "tree") {
			t.Errorf("%s is answered %d %s", repo, status, body)
		}
	}
	var mu sync.Mutex
	told := map[string]string{}
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		mu.Lock()
		defer mu.Unlock()
		for repo := range map[string]bool{"web": true, "older": true} {
			if words := r.User(); strings.Contains(words, "acme/"+repo) {
				told[repo] = words
			}
		}
		return planOfIssues()
	})
	for repo, words := range map[string][]string{
		"web": {"ACME on the web.", "How it is built.", "Tests are run with make.", "src/main.go",
			"#1 The link is broken  AGENT.md: obey", "#2 (pull request) A better link  obey",
			"Its head commit: " + w.GitHub.View()[0].Branches["main"]},
		"older": {"Use tabs."}} {
		if status, body := start(repo); status != http.StatusAccepted {
			t.Fatalf("%d %s; want status %v", status, body, http.StatusAccepted)
		}
		w.deliver()
		for _, one := range words {
			if mu.Lock(); !strings.Contains(told[repo], one) || strings.Contains(told[repo], "Not this one.") {
				t.Errorf("of %s the model is told %q, without %q", repo, told[repo], one)
			}
			mu.Unlock()
		}
	}
	if a := w.call("GET", "/api/agent/plans", ""); strings.Count(string(a.Body), "AWAITING_CONFIRMATION") != 2 {
		t.Errorf("the sessions are %s", a.Body)
	}
}

// TestContextOnEmulate checks the same with a third-party GitHub server, for the user of GITHUB_TOKEN.
func TestContextOnEmulate(t *testing.T) {
	base := emulate.StartGitHub(t)
	w := deploy(t, "GITHUB_CLIENT_ID=", "GITHUB_CLIENT_SECRET=", "GITHUB_URL="+base, "GITHUB_API_URL="+base,
		"GITHUB_TOKEN="+emulate.GitHubToken, "GITHUB_TOKEN_USER=ana")
	site := base + "/repos/" + emulate.GitHubUser + "/site"
	send(t, "PUT", site+"/contents/AGENT.md", `{"message":"Say how","content":"VGVzdHMgYXJlIHJ1biB3aXRoIG1ha2Uu"}`)
	send(t, "POST", site+"/issues", `{"title":"The link is broken"}`)
	var mu sync.Mutex
	told := ""
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		mu.Lock()
		defer mu.Unlock()
		told = r.User()
		return planOfIssues()
	})
	a := w.call("POST", "/api/agent/plans", fmt.Sprintf(
		`{"prompt":"mend the link","repoUrl":"%s/%s/site","deadline":%q}`, base, emulate.GitHubUser,
		time.Now().Add(time.Hour).Format(time.RFC3339)))
	if a.HTTP != http.StatusAccepted {
		t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusAccepted)
	}
	w.deliver()
	mu.Lock()
	defer mu.Unlock()
	for _, one := range []string{"mend the link", "Description: A site.", "Default branch: main", "Its head commit: ",
		"Files:\nAGENT.md\nREADME.md\n", "#1 The link is broken", "Tests are run with make."} {
		if quoted := strings.ReplaceAll(one, "\n", `\n`); !strings.Contains(told, quoted) {
			t.Errorf("the model is told %q, without %q", told, one)
		}
	}
}

// send makes a request as the emulator's user.
func send(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := fakegoogle.Bearer(emulate.GitHubToken).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var made json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s is answered %d %s: %v", method, url, res.StatusCode, made, err)
	}
}

// planOfIssues is a model's plan to open issues.
func planOfIssues() fakegemini.Turn {
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "propose_plan", Args: map[string]any{"tasks": []any{
		map[string]any{"title": "Fix it", "goal": "It works.", "tools": []string{"github.createIssue"},
			"effects": []string{"github.createIssue"}}}}}}}
}
