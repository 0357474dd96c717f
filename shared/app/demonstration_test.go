package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/podman"
)

// The repository of the demonstration. Its test prints a thousand lines before the failure.
var toMend = fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
	Files: map[string]string{"README.md": "Adds numbers.\n",
		"add.sh": "#!/bin/sh\n# add.sh prints the sum of two numbers.\n" + minus,
		"test.sh": "#!/bin/sh\nfor n in $(seq 1000); do echo \"ok  $n + 0\"; done\ngot=$(sh add.sh 2 3)\n" +
			"[ \"$got\" = 5 ] || { echo \"FAIL: 2 + 3 is $got; want 5\"; exit 1; }\necho PASS\n"},
	Issues: []fakegithub.SeedIssue{{Author: "zoe", Title: "2 + 3 is -1", Body: "The test fails since Monday."}}}

// The line of add.sh at the beginning, after the first commit, and after the second.
const minus, plus, quoted = "echo $(($1 - $2))\n", "echo $(($1 + $2))\n", "echo \"$(($1 + $2))\"\n"

// demonstration is the model of the demonstration: it takes values from the results of its calls.
type demonstration struct {
	*proved
	logs string            // the address of the log of a failed job
	seen map[string]string // what the results named
}

// remembers returns a call whose arguments may contain {NAME} for a value of an earlier result.
func (d *demonstration) remembers(name, tool string, args map[string]any, also ...func()) func(string) (string,
	map[string]any) {
	return func(observed string) (string, map[string]any) {
		for what, in := range results {
			if m := in.FindStringSubmatch(observed); m != nil {
				d.seen[what] = m[1]
			}
		}
		for _, do := range also {
			do()
		}
		d.t.Logf("%s: %s", name, tool)
		return tool, d.filled(args).(map[string]any)
	}
}

var results = map[string]*regexp.Regexp{"{COMMIT}": regexp.MustCompile(`"commit":"([0-9a-f]{40})"`),
	"{BOX}": regexp.MustCompile(`"id":"([0-9a-f]{64})"`), "{SUM}": regexp.MustCompile(`"sha256":"([0-9a-f]{64})"`),
	"{BLOB}": regexp.MustCompile(`"sha":"([0-9a-f]{40})"`), next: regexp.MustCompile(`"nextOffset":([0-9]+)`)}

// next is the line at which the rest of a file begins.
const next = "{NEXT}"

// filled returns a value of the arguments, with the remembered values in it.
func (d *demonstration) filled(v any) any {
	switch v := v.(type) {
	case string:
		is, named := d.seen[v]
		if named && v == next {
			return json.Number(is)
		}
		if named {
			return is
		}
	case map[string]any:
		out := map[string]any{}
		for k, one := range v {
			out[k] = d.filled(one)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = d.filled(one)
		}
		return out
	}
	return v
}

// check returns a function that gives the newest commit the conclusion of the repository's CI.
func (d *demonstration) check(conclusion string) func() {
	return func() {
		d.GitHub.AddCheck("acme", "web", "fix", fakegithub.Check{Name: "lint", Status: "completed",
			Conclusion: conclusion, Log: d.logs})
	}
}

// mending returns the model's calls, from the issue to the green check.
func (d *demonstration) mending() []func(string) (string, map[string]any) {
	in := func(more map[string]any) map[string]any {
		more["owner"], more["repo"] = "acme", "web"
		return more
	}
	edit := func(old, with string) []any { return []any{map[string]any{"old": old, "new": with}} }
	script := map[string]any{"containerId": "{BOX}", "script": "sh test.sh"}
	commit := func(from, message string, edits []any) map[string]any {
		c := in(map[string]any{"branch": "fix", "message": message,
			"files": []any{map[string]any{"path": "add.sh", "sha": "{BLOB}", "edits": edits}}})
		if from != "" {
			c["from"] = from
		}
		return c
	}
	return []func(string) (string, map[string]any){
		d.remembers("The issue is read", "github.readIssue", in(map[string]any{"issueNumber": 1})),
		d.remembers("The commit is found", "github.listFiles", in(map[string]any{})),
		d.remembers("It is checked out", "docker.createContainer", map[string]any{"options": map[string]any{
			"image": podman.Image, "memory": 64,
			"checkout": map[string]any{"owner": "acme", "repo": "web", "commit": "{COMMIT}"}}}),
		d.remembers("The test fails", "docker.executeScript", script),
		d.remembers("The file is read", "docker.readFileInContainer", map[string]any{"containerId": "{BOX}",
			"path": "add.sh"}),
		d.remembers("It is patched", "docker.editFile", map[string]any{"containerId": "{BOX}", "path": "add.sh",
			"sha256": "{SUM}", "edits": edit(minus, plus)}),
		d.remembers("The test passes", "docker.executeScript", script),
		d.remembers("The branch's file is read", "github.readFile", in(map[string]any{"path": "add.sh"})),
		d.remembers("The patch is committed", "github.commitFiles", commit("main", "Add instead of subtracting",
			edit(minus, plus))),
		d.remembers("A pull request is opened", "github.createPullRequest", in(map[string]any{"head": "fix",
			"base": "main", "title": "Add instead of subtracting", "body": "The sum was a difference."})),
		d.remembers("A check fails", "github.waitForChecks", in(map[string]any{"ref": "fix"}), d.check("failure")),
		d.remembers("The file is read again", "github.readFile", in(map[string]any{"path": "add.sh", "ref": "fix"})),
		d.remembers("A second commit", "github.commitFiles", commit("", "Quote the sum", edit(plus, quoted))),
		d.remembers("All checks are green", "github.waitForChecks", in(map[string]any{"ref": "fix"}),
			d.check("success")),
	}
}

// demonstrate deploys with Podman and a repository. The log of a failed job ends with the given error.
func demonstrate(t *testing.T, in fakegithub.Seed, failure string) (*demonstration, *podman.Engine) {
	t.Helper()
	engine := podman.Start(t)
	w := deploy(t, "DOCKER_HOST="+engine.Host, "DOCKER_IMAGES="+podman.Image)
	logs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "2026-03-02T10:00:00.1234567Z ##[error]%s\n", failure)
	}))
	t.Cleanup(logs.Close)
	w.GitHub.Add(in)
	w.linkGitHub("ana", "ana")
	return &demonstration{proved: w, logs: logs.URL, seen: map[string]string{}}, engine
}

// completed carries the calls out to the session's end. The user approves each card. It returns the results and the
// cards.
func (d *demonstration) completed(calls []func(string) (string, map[string]any)) (told, cards []string) {
	d.t.Helper()
	s := &steps{calls: calls, green: 2, tools: []string{"github.readIssue", "github.listFiles", "github.readFile",
		"github.commitFiles", "github.createPullRequest", "docker.createContainer", "docker.executeScript",
		"docker.readFileInContainer", "docker.editFile"}}
	got := d.carriedOut(s)
	for len(got.Approvals) > 0 && len(cards) < 20 {
		cards = append(cards, shownOn(got.Approvals[0]))
		d.t.Logf("Approved: %s", cards[len(cards)-1])
		d.approved(&got)
	}
	if got.Status != plan.StatusCompleted || len(s.told) != len(calls) {
		d.t.Fatalf("the session is %s after %d results, the last one %.2000s", got.Status, len(s.told),
			s.told[len(s.told)-1])
	}
	return s.told, cards
}

// says checks that the results contain the texts.
func says(t *testing.T, told []string, in map[int]string) {
	t.Helper()
	for at, want := range in {
		if !strings.Contains(told[at], want) {
			t.Errorf("result %d lacks %s: %.2000s", at, want, told[at])
		}
	}
}

// TestDemonstration is the planner's demonstration on the local GitHub with Podman. A plan takes an issue about
// a failing test to a pull request. Its task ends with green checks, after at most two tries. The user confirms the
// plan and approves each card.
//
//	go test ./shared/app -run TestDemonstration -v
func TestDemonstration(t *testing.T) {
	d, engine := demonstrate(t, toMend, "add.sh:3: quote the sum")
	told, cards := d.completed(d.mending())
	says(t, told, map[int]string{3: `FAIL: 2 + 3 is -1; want 5\n`, 6: `PASS\n`, 10: "add.sh:3: quote the sum",
		13: `"state":"success"`})
	for _, diff := range []string{"-" + minus + "+" + plus, "-" + plus + "+" + quoted} {
		if !strings.Contains(strings.Join(cards, "\n"), diff) {
			t.Errorf("no card shows the diff %q", diff)
		}
	}
	commits := d.GitHub.Commits("acme", "web", "fix")
	if len(commits) != 3 || !strings.HasSuffix(commits[0].Files["add.sh"], quoted) ||
		!strings.HasSuffix(commits[1].Files["add.sh"], plus) || d.GitHub.Effects("pulls/create") != 1 {
		t.Errorf("the branch has %+v", commits)
	}
	if n := engine.Containers(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

// shownOn returns a card in words.
func shownOn(card run.ApprovalView) string {
	var b strings.Builder
	b.WriteString(card.Preview.Title + "\n")
	for _, f := range card.Preview.Fields {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	return b.String()
}
