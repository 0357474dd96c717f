package github_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/fields"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// server is a GitHub with the tools that use it. owner has the repository site, with an issue and a branch fix.
type server struct {
	set   tool.Set
	uid   string
	owner string
	lacks map[string]bool // features that this GitHub lacks, by the names of subtests
}

// call calls a tool as the loop does, and returns its result.
func (s server) call(t *testing.T, name string, args map[string]any) (json.RawMessage, error) {
	t.Helper()
	tl := s.set[name]
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{UID: s.uid, ActionID: fmt.Sprintf("action_%08x", crc32.ChecksumIEEE(append(raw, name...)))}
	if c.Args, err = tl.Normalize(raw); err != nil {
		return nil, err
	}
	if tl.Prepares() {
		if c.Handle, err = tl.Prepare(t.Context(), c); err != nil {
			return nil, err
		}
	}
	out, err := tl.Execute(t.Context(), c)
	if err != nil || !tl.SideEffect {
		return out, err
	}
	settled, err := tl.Reconcile(t.Context(), c)
	if err != nil || settled.Verdict != tool.Done {
		t.Errorf("%s was done, and is settled as %+v, %v", name, settled, err)
	}
	return out, nil
}

// want calls a tool and checks that its result contains the texts.
func (s server) want(t *testing.T, name string, args map[string]any, texts ...string) {
	t.Helper()
	out, err := s.call(t, name, args)
	if err != nil {
		t.Fatalf("%s: %v (%v)", name, err, fault.As(err).Err)
	}
	for _, text := range texts {
		if !strings.Contains(string(out), text) {
			t.Errorf("%s is %s; it lacks %s", name, out, text)
		}
	}
}

func (s server) in(more map[string]any) map[string]any {
	all := in(more)
	all["owner"] = s.owner
	return all
}

func TestToolsOnTheLocalGitHub(t *testing.T) {
	g := toolstest.OpenGitHub(t, nil)
	day(t, server{set: github.New(accounts{}, github.Options{Endpoint: "http://github.test/"}),
		uid: (&env{GitHub: g}).as(toolstest.GoogleUser), owner: toolstest.GoogleUser})
}

// TestToolsOnEmulate runs the same calls on an independent implementation of GitHub.
func TestToolsOnEmulate(t *testing.T) {
	base := emulate.StartGitHub(t)
	day(t, server{uid: emulate.GitHubUser, owner: emulate.GitHubUser,
		set: github.New(emulated{}, github.Options{Endpoint: base + "/"}),
		lacks: map[string]bool{
			"a second pull request": true, // it opens a second one
			"a bad token":           true, // it accepts any token
		}})
}

// emulated is the account of the emulator's user.
type emulated struct{ fakegoogle.Accounts }

func (emulated) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return fakegoogle.Bearer(emulate.GitHubToken), nil
}

// day calls each tool once, in an order in which each finds the objects that it needs.
func day(t *testing.T, s server) {
	run := func(name string, f func(t *testing.T)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			if s.lacks[name] {
				t.Skip("this server lacks it")
			}
			f(t)
		})
	}
	run("reads", func(t *testing.T) { reads(t, s) })
	run("issues", func(t *testing.T) { issues(t, s) })
	run("commits and pull requests", func(t *testing.T) { pulls(t, s) })
	run("a second pull request", func(t *testing.T) {
		again := s.in(map[string]any{"title": "Again", "head": "mend", "base": "main"})
		s.want(t, github.CreatePullRequest, again, `"open"`)
		_, err := s.call(t, github.CreatePullRequest, s.in(map[string]any{"title": "Twice", "head": "mend",
			"base": "main"}))
		if !fault.Is(err, fault.Tool, "provider_refused") {
			t.Errorf("a second one: %v", err)
		}
	})
	run("repositories", func(t *testing.T) {
		s.want(t, github.CreateRepository, map[string]any{"name": "fresh", "description": "New.", "isPrivate": true},
			`"name":"fresh"`, `"private":true`)
		_, err := s.call(t, github.CreateRepository, map[string]any{"name": "fresh"})
		if !fault.Is(err, fault.Tool, "provider_refused") {
			t.Errorf("a name that is taken: %v", err)
		}
		s.want(t, github.ListRepositories, map[string]any{}, `"name":"fresh"`, `"name":"site"`)
		s.want(t, github.CommitFiles, map[string]any{"owner": s.owner, "repo": "fresh", "branch": "main",
			"message": "Begin", "files": files("a.md", "A.\n")}, `"branch":"main"`)
	})
	run("a bad token", func(t *testing.T) {
		bad := s
		bad.uid = strings.Replace(s.uid, toolstest.GoogleUser, "nobody", 1)
		_, err := bad.call(t, github.ReadIssue, s.in(map[string]any{"issueNumber": 1}))
		if !fault.Is(err, fault.Auth, fault.CodeReauth) {
			t.Errorf("a token that nobody has: %v", err)
		}
	})
}

// reads reads existing objects and missing ones, which are null.
func reads(t *testing.T, s server) {
	s.want(t, github.RetrieveRepository, s.in(nil), `"defaultBranch":"main"`, `"name":"site"`)
	s.want(t, github.ListFiles, s.in(nil), `"path":"README.md"`)
	s.want(t, github.ReadFile, s.in(map[string]any{"path": "README.md"}), `"content":"# `)
	for name, args := range map[string]map[string]any{
		github.RetrieveRepository: {"repo": "none"},
		github.ReadIssue:          {"issueNumber": 99},
		github.ReadPullRequest:    {"prNumber": 99},
		github.ReadFile:           {"path": "none.md"},
		github.ListFiles:          {"ref": "none"},
		github.ListIssues:         {"repo": "none"},
	} {
		if out, err := s.call(t, name, s.in(args)); err != nil || string(out) != "null" {
			t.Errorf("%s of what is not there is %s, %v; want null", name, out, err)
		}
	}
}

func issues(t *testing.T, s server) {
	out, err := s.call(t, github.CreateIssue, s.in(map[string]any{"title": "Two", "body": "Text.",
		"labels": []string{"bug"}}))
	if err != nil {
		t.Fatal(err)
	}
	var made github.Issue
	if err := json.Unmarshal(out, &made); err != nil || made.Number == 0 {
		t.Fatalf("it made %s, %v", out, err)
	}
	at := map[string]any{"issueNumber": made.Number}
	s.want(t, github.CreateComment, s.in(map[string]any{"issueNumber": made.Number, "body": "Seen."}), `"id":`)
	s.want(t, github.ReadIssue, s.in(at), `"body":"Text."`, `"body":"Seen."`, `"labels":["bug"]`, `"state":"open"`)
	s.want(t, github.ListIssues, s.in(map[string]any{"labels": []string{"bug"}}), `"title":"Two"`)
	t.Run("update", func(t *testing.T) {
		s.want(t, github.UpdateIssue, s.in(map[string]any{"issueNumber": made.Number, "updates": map[string]any{
			"title": "Three", "body": "New.", "labels": []string{}}}), `"title":"Three"`)
	})
	t.Run("close", func(t *testing.T) { s.want(t, github.CloseIssue, s.in(at), `"closed"`) })
	_, err = s.call(t, github.UpdateIssue, s.in(map[string]any{"issueNumber": made.Number,
		"updatedAt": "2020-01-01T00:00:00Z", "updates": map[string]any{"title": "Four"}}))
	if !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("a change of what was changed since it was read: %v", err)
	}
}

func pulls(t *testing.T, s server) {
	s.want(t, github.CommitFiles, s.in(map[string]any{"branch": "mend", "from": "main", "message": "Mend it",
		"files": files("docs/new.md", "New.\n")}), `"branch":"mend"`)
	t.Run("again", func(t *testing.T) {
		s.want(t, github.CommitFiles, s.in(map[string]any{"branch": "mend", "message": "Mend it more",
			"files": append(files("docs/new.md", "Newer.\n"), map[string]any{"path": "README.md", "delete": true})}))
	})
	s.want(t, github.ReadFile, s.in(map[string]any{"path": "docs/new.md", "ref": "mend"}), `"content":"Newer.\n"`)
	if out, err := s.call(t, github.ReadFile, s.in(map[string]any{"path": "README.md", "ref": "mend"})); err != nil ||
		string(out) != "null" {
		t.Errorf("a file that went is %s, %v", out, err)
	}
	out, err := s.call(t, github.CreatePullRequest, s.in(map[string]any{"title": "Mend", "head": "mend",
		"base": "main", "body": "It is."}))
	if err != nil {
		t.Fatal(err, fault.As(err).Err)
	}
	var made github.PullRequest
	if err := json.Unmarshal(out, &made); err != nil || made.Number == 0 {
		t.Fatalf("it made %s, %v", out, err)
	}
	at := map[string]any{"prNumber": made.Number}
	s.want(t, github.ReadPullRequest, s.in(at), `"title":"Mend"`, `"body":"It is."`, `"base":"main"`, `:mend"`)
	s.want(t, github.ListPullRequests, s.in(nil), `"title":"Mend"`, `"base":"main"`)
	t.Run("update", func(t *testing.T) {
		s.want(t, github.UpdatePullRequest, s.in(map[string]any{"prNumber": made.Number, "updates": map[string]any{
			"title": "Better"}}), `"title":"Better"`)
	})
	t.Run("close", func(t *testing.T) { s.want(t, github.ClosePullRequest, s.in(at), `"closed"`) })
}

// TestEmptyRepository tests a repository without a commit. GitHub answers 409 to requests that need one.
func TestEmptyRepository(t *testing.T) {
	g := toolstest.OpenGitHub(t, nil)
	g.Add(fakegithub.Seed{Owner: toolstest.GoogleUser, Name: "bare"})
	s := server{set: github.New(accounts{}, github.Options{Endpoint: "http://github.test/"}),
		uid: (&env{GitHub: g}).as(toolstest.GoogleUser), owner: toolstest.GoogleUser}
	bare := func(more map[string]any) map[string]any {
		all := s.in(more)
		all["repo"] = "bare"
		return all
	}
	if out, err := s.call(t, github.ListFiles, bare(nil)); err != nil || string(out) != `{"files":[]}` {
		t.Errorf("its files are %s, %v", out, err)
	}
	if out, err := s.call(t, github.ReadFile, bare(map[string]any{"path": "a.md"})); err != nil ||
		string(out) != "null" {
		t.Errorf("a file of it is %s, %v", out, err)
	}
	for _, from := range []string{"", "next"} {
		_, err := s.call(t, github.CommitFiles, bare(map[string]any{"branch": "main", "from": from, "message": "Begin",
			"files": files("a.md", "A.\n")}))
		fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: "repo"}, from)
	}
}
