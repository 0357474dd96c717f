package github_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// committing returns a prepared commit of the files to a branch of good/site.
func committing(t *testing.T, more map[string]any) *env {
	t.Helper()
	args := in(map[string]any{"branch": "main", "message": "Mend it", "files": files("README.md", "# Mended\n")})
	maps.Copy(args, more)
	w := open(t, github.CommitFiles, args, "git/update-ref")
	w.prepare(t)
	return w
}

func (w *env) prepare(t *testing.T) {
	t.Helper()
	var err error
	if w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
}

func (w *env) execute(t *testing.T) {
	t.Helper()
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
}

// others makes another user commit to main.
func (w *env) others(t *testing.T) {
	t.Helper()
	their := *w
	their.Call.UID, their.Call.ActionID = w.as("other"), "action_of_another"
	their.Call.Args = json.RawMessage(strings.Replace(string(w.Call.Args), "Mended", "Theirs", 1))
	their.prepare(t)
	their.execute(t)
}

// reset makes the owner reset main, by force, to the parent of the commit.
func (w *env) reset(t *testing.T) {
	t.Helper()
	var on struct{ Parent string }
	if err := json.Unmarshal([]byte(w.Call.Handle), &on); err != nil {
		t.Fatal(err)
	}
	api, err := githubapi.NewClient(githubapi.WithHTTPClient(fakegoogle.Bearer(toolstest.GoogleUser)),
		githubapi.WithURLs(&w.URL, &w.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := api.Git.UpdateRef(t.Context(), toolstest.GoogleUser, "site", "heads/main",
		githubapi.UpdateRef{SHA: on.Parent, Force: new(true)}); err != nil {
		t.Fatal(err)
	}
}

// wants checks the verdict about the call.
func (w *env) wants(t *testing.T, want tool.Verdict) {
	t.Helper()
	if out, err := w.Tool.Reconcile(t.Context(), w.Call); err != nil || out.Verdict != want {
		t.Errorf("it is settled as %+v, %v; want %s", out, err, want)
	}
}

// TestCommitReconcileAfterReset makes the process die after the effect, and the owner undo it.
func TestCommitReconcileAfterReset(t *testing.T) {
	w := committing(t, nil)
	w.wants(t, tool.NotDone)
	w.execute(t)
	w.wants(t, tool.Done)
	w.reset(t)
	w.others(t)
	w.wants(t, tool.Unknown)

	made := committing(t, map[string]any{"branch": "mend", "from": "main"})
	made.wants(t, tool.Unknown)
}

// TestCommitTooLate makes another user commit before the first attempt, and after it.
func TestCommitTooLate(t *testing.T) {
	w := committing(t, nil)
	w.others(t)
	if end, _, err := w.CarryOut(t); end != toolstest.Failed || !fault.Is(err, fault.Tool, "provider_refused") {
		t.Errorf("a race that is lost is %s, %v", end, err)
	}
	first := committing(t, nil)
	first.execute(t)
	first.others(t)
	first.execute(t)
	if n := first.Effects(); n != 2 {
		t.Errorf("there are %d effects; want ours and theirs", n)
	}
}

// TestModesOfFiles commits to entries other than ordinary files.
func TestModesOfFiles(t *testing.T) {
	call := func(t *testing.T, list []any) (*env, error) {
		t.Helper()
		w := open(t, github.CommitFiles, map[string]any{"owner": toolstest.GoogleUser, "repo": "kit",
			"branch": "main", "message": "Mend it", "files": list}, "git/update-ref")
		w.Add(fakegithub.Seed{Owner: toolstest.GoogleUser, Name: "kit",
			Files: map[string]string{"bin/run.sh": "true\n", "README.md": "# Kit\n", "bin/link": "run.sh", "lib": "x"},
			Modes: map[string]string{"bin/run.sh": "100755", "bin/link": "120000", "lib": "160000"}})
		var err error
		w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call)
		return w, err
	}
	w, err := call(t, append(append(files("bin/run.sh", "false\n"), files("README.md", "# Mended\n")...),
		files("bin/new.md", "New.\n")...))
	if err != nil {
		t.Fatal(err)
	}
	w.execute(t)
	v := w.View()[1]
	if v.Files["bin/run.sh"] != "false\n" || v.Files["bin/new.md"] != "New.\n" || !maps.Equal(v.Modes,
		map[string]string{"bin/run.sh": "100755", "bin/link": "120000", "lib": "160000"}) {
		t.Errorf("the files are %v, of the modes %v", v.Files, v.Modes)
	}
	for path, why := range map[string]string{"bin/link": "a symbolic link", "lib": "a submodule", "bin": "a folder",
		"bin/link/x": "not a folder", "lib/x/y": "not a folder"} {
		if _, err := call(t, files(path, "x")); !fault.Is(err, fault.Validation, "invalid") ||
			!strings.Contains(err.Error(), path+" ") || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is written: %v", path, err)
		}
	}
	if _, err := call(t, []any{map[string]any{"path": "bin/link", "delete": true}}); err == nil {
		t.Error("a link is deleted")
	}
}
