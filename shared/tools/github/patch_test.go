package github_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// kit is a repository for commits. It has a file of 2,000 lines and more than 256 KiB.
func kit() fakegithub.Seed {
	var long strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&long, "line %d %s\n", n, strings.Repeat("x", 140))
	}
	return fakegithub.Seed{Owner: toolstest.GoogleUser, Name: "kit", Files: map[string]string{
		"README.md": "# Kit\n\nSee https://license.test/a.\n\nEnd.\n", "long.txt": long.String(), "bin/run": "true\n",
		"icon.png": "\x89PNG\x00", "go.sum": "a v1\nb v1\n", "old.txt": "a\nb\nc\nd\n", "crlf.txt": "a\r\nb\r\n"},
		Modes: map[string]string{"bin/run": "100755"}}
}

// asRead stands for the SHA of the version that the model has read.
const asRead = "0000000000000000000000000000000000000000"

// proposing returns a commit of the files to kit, completed as for a proposal.
func proposing(t *testing.T, more map[string]any, list ...any) (*env, error) {
	t.Helper()
	args := map[string]any{"owner": toolstest.GoogleUser, "repo": "kit", "branch": "main", "message": "Mend it",
		"files": list}
	for k, v := range more {
		args[k] = v
	}
	w := open(t, github.CommitFiles, args, "git/update-ref")
	w.Add(kit())
	for _, f := range list { // the model names the version that it has read
		if f := f.(map[string]any); f["sha"] == asRead {
			f["sha"] = w.shaOf(t, f["path"].(string))
		}
	}
	var err error
	if w.Call.Args, err = json.Marshal(args); err != nil {
		t.Fatal(err)
	}
	if w.Call.Args, err = w.Tool.Normalize(w.Call.Args); err != nil {
		t.Fatal(err)
	}
	completed, err := w.Tool.Complete(t.Context(), w.Call)
	if err == nil {
		w.Call.Args = completed
	}
	return w, err
}

// shaOf returns the SHA of a file of kit, as github.readFile returns it.
func (w *env) shaOf(t *testing.T, path string) string {
	t.Helper()
	call := w.Call
	call.Args = json.RawMessage(fmt.Sprintf(`{"owner":%q,"repo":"kit","path":%q}`, toolstest.GoogleUser, path))
	out, err := local()[github.ReadFile].Execute(t.Context(), call)
	var f github.File
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil || f.SHA == "" {
		t.Fatalf("%s: %s, %v", path, out, err)
	}
	return f.SHA
}

// shown returns the card of the call as text.
func (w *env) shown(t *testing.T) string {
	t.Helper()
	p, err := w.Tool.Preview(w.Call.Args)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range p.Fields {
		fmt.Fprintf(&out, "%s: %s", f.Label, f.Value)
		if f.Folded {
			out.WriteString(" (folded)")
		}
		out.WriteString("\n")
	}
	return out.String() + strings.Join(p.Warnings, "\n")
}

// TestPatchCardDiff proposes one commit with each kind of change, reads the card, and creates the commit.
func TestPatchCardDiff(t *testing.T) {
	w, err := proposing(t, nil, edited("README.md", asRead, "End.", "The\u202eend."),
		edited("long.txt", asRead, "line 1500 x", "LINE 1500 x"), edited("bin/run", asRead, "true", "false"),
		edited("go.sum", asRead, "b v1", "b v2"), files("new.txt", "a\nb\nc\nD\n")[0],
		map[string]any{"path": "old.txt", "delete": true}, files("icon.png", "text\n")[0],
		files(".github/workflows/ci.yml", "on: push\n")[0])
	if err != nil {
		t.Fatal(err)
	}
	card := w.shown(t)
	for _, want := range []string{"Change README.md, +1 −1: @@ -2,4 +2,4 @@\n \n See https://license.test/a.\n \n" +
		"-End.\n+The⟨U+202E⟩end.\n", "Change long.txt, +1 −1: @@ -1498,7 +1498,7 @@\n line 1497", "+LINE 1500 x",
		"Change bin/run, +1 −1", "Look closely at bin/run: it is a script", "b v2\n (folded)",
		"Look closely at go.sum: it decides", "Rename old.txt to new.txt, +1 −1",
		"Delete old.txt: Deletes the file with its 4",
		"Replace icon.png: The file on the branch is not a text", "New file .github/workflows/ci.yml, +1: on: push",
		"Look closely at .github/workflows/ci.yml: a build service", "characters that cannot be seen"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q:\n%.6000s", want, card)
		}
	}
	if n := len(w.Call.Args); n > 16<<10 {
		t.Errorf("the arguments have %d bytes", n)
	}
	w.prepare(t)
	w.execute(t)
	v := w.View()[1]
	if v.Files["README.md"] != "# Kit\n\nSee https://license.test/a.\n\nThe\u202eend.\n" ||
		!strings.Contains(v.Files["long.txt"], "\nLINE 1500 x") ||
		len(v.Files["long.txt"]) != len(kit().Files["long.txt"]) ||
		v.Files["bin/run"] != "false\n" || v.Modes["bin/run"] != "100755" || v.Files["old.txt"] != "" {
		t.Errorf("the files are %.300q", v.Files)
	}
}

// TestPatchRefused checks that an invalid proposal is refused with the reason, and that no approval is requested.
func TestPatchRefused(t *testing.T) {
	for want, f := range map[string]map[string]any{
		"README.md: the file does not contain this text":     edited("README.md", asRead, "Missing.", "x"),
		"go.sum: the file contains this text more than once": edited("go.sum", asRead, " v1", " v2"),
		"On the branch, README.md is another version by now": edited("README.md", someSHA, "End.", "x"),
		"On the branch, gone.txt is missing":                 edited("gone.txt", someSHA, "End.", "x"),
		"icon.png is not text":                               edited("icon.png", asRead, "PNG", "x"),
		"its lines end with CR LF":                           edited("crlf.txt", asRead, "a\nb", "x"),
	} {
		if _, err := proposing(t, nil, f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}

// TestPatchCommittedAsShown changes the branch, or the arguments, between the card and the commit.
func TestPatchCommittedAsShown(t *testing.T) {
	for name, list := range map[string][]any{
		"a patch":    {edited("README.md", asRead, "End.", "Mended.")},
		"a file":     {files("README.md", "Mended.\n")[0]},
		"a deletion": {map[string]any{"path": "README.md", "delete": true}},
	} {
		w, err := proposing(t, nil, list...)
		if err != nil {
			t.Fatal(name, err)
		}
		theirs := *w
		theirs.Call.ActionID = "action_of_another"
		theirs.Call.Args = json.RawMessage(`{"owner":"` + toolstest.GoogleUser + `","repo":"kit","branch":"main",` +
			`"message":"Theirs","files":[{"path":"README.md","content":"Theirs.\n"}]}`)
		theirs.prepare(t)
		theirs.execute(t)
		if _, err := w.Tool.Prepare(t.Context(), w.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) ||
			!strings.Contains(err.Error(), "README.md is another version") {
			t.Errorf("%s: %v; want error %v %v, the error with “README.md is another version”",
				name, err, fault.Policy, fault.CodeStaleView)
		}
	}
	w, err := proposing(t, nil, edited("README.md", asRead, "End.", "Mended."), files("new.txt", "Ours.\n")[0])
	if err != nil {
		t.Fatal(err)
	}
	w.Call.Args = json.RawMessage(strings.Replace(string(w.Call.Args), `"new":"Mended."`, `"new":"Other."`, 1))
	if _, err := w.Tool.Prepare(t.Context(), w.Call); !fault.Is(err, fault.Policy, fault.CodeIntegrity) {
		t.Errorf("another text than the approved one: %v", err)
	}
}

// TestPatchBaseOfModelDropped checks that a base in the model's own arguments, or in a user's edits, is dropped.
func TestPatchBaseOfModelDropped(t *testing.T) {
	w, err := proposing(t, nil, edited("README.md", asRead, "End.", "Mended."))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := w.Tool.Normalize(w.Call.Args)
	if err != nil || strings.Contains(string(bare), `"base"`) || strings.Contains(string(w.Tool.Schema), `"base"`) {
		t.Errorf("arguments %s, %v", bare, err)
	}
	edited := json.RawMessage(strings.Replace(string(bare), "Mend it", "Mend the end", 1))
	if revised, err := w.Tool.Revise(w.Call.Args, edited); err != nil || !strings.Contains(string(revised), `"base"`) {
		t.Errorf("another message drops the diff: %s, %v", revised, err)
	}
	edited = json.RawMessage(strings.Replace(string(bare), "Mended.", "Other.", 1))
	if revised, err := w.Tool.Revise(w.Call.Args, edited); err != nil || strings.Contains(string(revised), `"base"`) {
		t.Errorf("another text keeps the diff: %s, %v", revised, err)
	}
}

// TestPatchOfContainerFile shows the changes that a file in the container makes. The approval covers its SHA-256.
func TestPatchOfContainerFile(t *testing.T) {
	text := kit().Files["README.md"] + "More.\n"
	b := box{"/work/README.md": text, "/work/new.txt": "New.\n"}
	w := from(t, b, boxID, taken("README.md", "", text), taken("new.txt", "", "New.\n"))
	w.Add(kit())
	w.Call.Args = json.RawMessage(strings.Replace(string(w.Call.Args), `"repo":"site"`, `"repo":"kit"`, 1))
	var err error
	if w.Call.Args, err = w.Tool.Complete(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	card := w.shown(t)
	for _, want := range []string{"Change README.md, +1 −0: @@ -3,3 +3,4 @@", "+More.\n",
		"with the SHA-256 " + sumOf(text),
		"New file new.txt, +1: @@ -0,0 +1 @@\n+New."} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q:\n%s", want, card)
		}
	}
	w.prepare(t)
	w.execute(t)
	if got := w.View()[1].Files["README.md"]; got != text {
		t.Errorf("the file is %q", got)
	}
	w = from(t, b, boxID, taken("README.md", "", "other"))
	if _, err := w.Tool.Complete(t.Context(), w.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("a proposal of another sum: %v", err)
	}
}

// TestPatchCheckedText checks that lines that the repository's own file has already are not checked as free text.
func TestPatchCheckedText(t *testing.T) {
	whole := strings.Replace(kit().Files["README.md"], "End.", "Ask @zoe.", 1)
	for name, f := range map[string]any{"a patch": edited("README.md", asRead, "End.", "Ask @zoe."),
		"a whole file": files("README.md", whole)[0]} {
		w, err := proposing(t, nil, f)
		if err != nil {
			t.Fatal(err)
		}
		free, err := w.Tool.FreeText(w.Call.Args)
		if err != nil || strings.Join(free, "|") != "Mend it" {
			t.Errorf("%s: free text %q, %v", name, free, err)
		}
		_, changes, err := w.Tool.Changes(w.Call.Args)
		want := tool.Change{Stood: "\nSee https://license.test/a.\n\nEnd.\n", Added: "Ask @zoe.\n"}
		if err != nil || len(changes) != 1 || changes[0] != want {
			t.Errorf("%s: changes %q, %v", name, changes, err)
		}
	}
}
