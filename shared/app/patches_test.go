package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

// longFile is longer than one result, and has a link and a mention near the line that is patched.
func longFile() string {
	var b strings.Builder
	for n := range 3000 {
		fmt.Fprintf(&b, "line %d of the file\n", n)
		if n == 1500 {
			b.WriteString("See https://license.test/terms and ask @zoe.\n")
		}
	}
	return b.String()
}

// patching deploys a repository, and returns a plan's model that reads the end of a long file and commits the change.
func patching(t *testing.T, change func(sha string) map[string]any, grants ...any) (*proved, *steps) {
	w := deploy(t)
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files: map[string]string{"README.md": "A site.", "long.txt": longFile()}})
	w.linkGitHub("ana", "ana")
	of := func(name string, more map[string]any) (string, map[string]any) {
		more["owner"], more["repo"] = "acme", "web"
		return name, more
	}
	commit := func(observed string) (string, map[string]any) {
		var got struct{ Output struct{ SHA string } }
		if err := json.Unmarshal([]byte(observed), &got); err != nil {
			t.Fatal(err)
		}
		return of("github.commitFiles", map[string]any{"branch": "main", "message": "Mend it",
			"files": []any{change(got.Output.SHA)}})
	}
	return w, &steps{grants: grants, tools: []string{"github.readFile", "github.commitFiles"},
		calls: []func(string) (string, map[string]any){func(string) (string, map[string]any) {
			return of("github.readFile", map[string]any{"path": "long.txt", "offset": 1490, "limit": 50})
		}, commit}}
}

// replacing is a patch of long.txt.
func replacing(old, with string) func(sha string) map[string]any {
	return func(sha string) map[string]any {
		return map[string]any{"path": "long.txt", "sha": sha, "edits": []any{map[string]any{"old": old, "new": with}}}
	}
}

// approved approves the session's only card.
func (w *proved) approved(got *planner.Session) {
	w.t.Helper()
	if len(got.Approvals) != 1 {
		w.t.Fatalf("%d cards wait: %+v", len(got.Approvals), got)
	}
	card := got.Approvals[0]
	w.wants("the approval", w.call("POST", "/api/agent/approvals/resolve", fmt.Sprintf(
		`{"approvalId":%q,"decision":"approve_once","argsHash":%q}`, card.ApprovalID, card.ArgsHash)), 200, "")
	w.plans(got, "/"+got.SessionID, "")
}

// TestPatchCardDiff patches a file that the model has read in part. The run's user reads the diff on the card. The
// branch then has exactly that.
func TestPatchCardDiff(t *testing.T) {
	w, s := patching(t, replacing("line 1502 of the file\n", "line 1502, mended\n"))
	got := w.carriedOut(s)
	at := -1
	if len(got.Approvals) == 1 {
		at = slices.IndexFunc(got.Approvals[0].Preview.Fields, func(f tool.Field) bool { return f.Diff })
	}
	if at < 0 {
		t.Fatalf("no card has a diff: %+v, told %q", got, s.told)
	}
	f := got.Approvals[0].Preview.Fields[at]
	if f.Label != "Change long.txt, +1 −1" || !strings.Contains(f.Value,
		"-line 1502 of the file\n+line 1502, mended\n") || strings.Count(f.Value, "\n") != 9 {
		t.Errorf("the card shows %+v", f)
	}
	w.approved(&got)
	want := strings.Replace(longFile(), "line 1502 of the file\n", "line 1502, mended\n", 1)
	if is := w.GitHub.View()[0].Files["long.txt"]; is != want {
		t.Errorf("the branch has %d bytes, told %q", len(is), s.told)
	}
}

// TestPatchOfFileReadInPart tells the model which bytes are missing.
func TestPatchOfFileReadInPart(t *testing.T) {
	w, s := patching(t, func(string) map[string]any {
		return map[string]any{"path": "long.txt", "content": "All of it."}
	})
	if got := w.carriedOut(s); len(got.Approvals) != 0 || !strings.Contains(s.told[len(s.told)-1], "only in part") ||
		!strings.Contains(s.told[len(s.told)-1], "edits") {
		t.Errorf("%d cards wait, and the model was told %q", len(got.Approvals), s.told)
	}
}

// TestPatchAfterBranchMoved changes the file while the card waits.
func TestPatchAfterBranchMoved(t *testing.T) {
	w, s := patching(t, replacing("line 1502 of the file\n", "line 1502, mended\n"))
	got := w.carriedOut(s)
	w.GitHub.Push("acme", "web", "long.txt", longFile()+"More.\n")
	w.approved(&got)
	if is := w.GitHub.View()[0].Files["long.txt"]; strings.Contains(is, "mended") ||
		!strings.Contains(s.told[len(s.told)-1], "another version by now") {
		t.Errorf("the branch has %d bytes, told %q", len(is), s.told[len(s.told)-1])
	}
}

// TestPatchGrant grants one commit. Text that the file already has needs no further approval. Text that the patch adds
// does.
func TestPatchGrant(t *testing.T) {
	grant := map[string]any{"tool": "github.commitFiles", "maxCalls": 1, "target": map[string]any{"owner": "acme",
		"repo": "web", "branch": "main", "files": []any{map[string]any{"path": "long.txt"}}}}
	const stood = "See https://license.test/terms and ask @zoe.\n"
	for name, c := range map[string]struct {
		change func(string) map[string]any
		found  string // empty: the grant covers the call
	}{
		"beside a link": {replacing("line 1502 of the file\n", "line 1502, mended\n"), ""},
		"the same line": {replacing(stood, "Please s"+stood[1:]), ""},
		"another link":  {replacing(stood, stood+"See https://evil.test/x too.\n"), "https://evil.test/x"},
		"a longer link": {replacing("license.test/terms", "license.test/terms/evil"),
			"https://license.test/terms/evil"},
		"another person": {replacing("@zoe", "@zoe and @eve"), "@eve"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := patching(t, c.change, grant)
			got := w.carriedOut(s)
			if c.found == "" {
				if len(got.Approvals) != 0 || w.GitHub.View()[0].Files["long.txt"] == longFile() {
					t.Errorf("it is %s, and waits for %+v, told %q", got.Status, got.Approvals, s.told)
				}
				return
			}
			if len(got.Approvals) != 1 || !slices.ContainsFunc(got.Approvals[0].Findings, func(f run.Finding) bool {
				return f.Text == c.found
			}) {
				t.Errorf("it is %s, and waits for %+v, told %q", got.Status, got.Approvals, s.told)
			}
		})
	}
}

// TestFileReadToEnd reads the last lines of a long file, with its size and its sha.
func TestFileReadToEnd(t *testing.T) {
	w, s := patching(t, replacing("line 2999 of the file\n", "the end\n"))
	s.calls[0] = func(string) (string, map[string]any) {
		return "github.readFile", map[string]any{"owner": "acme", "repo": "web", "path": "long.txt", "offset": 2998}
	}
	w.carriedOut(s)
	var got struct {
		Output struct {
			Content, SHA      string
			Size, Line, Lines int
			Truncated         bool
		}
	}
	if err := json.Unmarshal([]byte(s.told[0]), &got); err != nil {
		t.Fatal(err)
	}
	if f := got.Output; f.Content != "line 2997 of the file\nline 2998 of the file\nline 2999 of the file\n" ||
		f.SHA == "" || f.Size != len(longFile()) || f.Line != 2999 || f.Lines != 3001 || f.Truncated {
		t.Errorf("the model sees %+v", f)
	}
}
