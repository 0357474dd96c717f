package github_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// snapshots returns a reader of commits on a local GitHub whose repository kit has these files.
func snapshots(t *testing.T, files, modes map[string]string) (github.Snapshots, *env, string) {
	t.Helper()
	w := &env{GitHub: toolstest.OpenGitHub(t, nil)}
	w.Add(fakegithub.Seed{Owner: toolstest.GoogleUser, Name: "kit", Private: true, Files: files, Modes: modes})
	return github.NewSnapshots(accounts{}, github.Options{Endpoint: "http://github.test/"}), w,
		w.View()[1].Branches["main"]
}

// TestSnapshot checks that a snapshot has the files as git stores them, whatever an archive would leave out or fill in,
// and that nothing leads out of it.
func TestSnapshot(t *testing.T) {
	files := map[string]string{"README.md": "# Kit $Format:%H$\n", "bin/run": "true\n", "raw": "\x00\xff", "empty": "",
		".gitattributes": "README.md export-subst\nbin export-ignore\n", "in": "bin/run", "bin/up": "../raw",
		"out": "../secret", "root": "/etc/passwd", "module": "x", "deep/out": "../../x"}
	s, w, commit := snapshots(t, files, map[string]string{"bin/run": "100755", "in": "120000", "bin/up": "120000",
		"out": "120000", "root": "120000", "deep/out": "120000", "module": "160000"})
	read := func(uid, repo, commit string) (container.Snapshot, error) {
		return s.Snapshot(t.Context(), tool.Call{UID: uid}, toolstest.GoogleUser, repo, commit)
	}
	got, err := read(w.as(toolstest.GoogleUser), "kit", commit)
	if err != nil || got.LeftOut != 4 {
		t.Fatalf("%d are left out of %+v, %v", got.LeftOut, got.Entries, err)
	}
	has := map[string]string{}
	for _, e := range got.Entries {
		has[e.Path] = fmt.Sprintf("%s%t %s", e.Link, e.Program, e.Content)
	}
	if want := map[string]string{"README.md": "false # Kit $Format:%H$\n", "bin/run": "true true\n",
		"raw": "false \x00\xff", "empty": "false ", ".gitattributes": "false " + files[".gitattributes"],
		"in": "bin/runfalse ", "bin/up": "../rawfalse "}; !maps.Equal(has, want) {
		t.Errorf("there are %q, want %q", has, want)
	}
	for name, c := range map[string]struct{ uid, repo, commit string }{
		"another's private repository": {w.as("other"), "kit", commit},
		"no repository":                {w.as(toolstest.GoogleUser), "none", commit},
		"no commit":                    {w.as(toolstest.GoogleUser), "kit", strings.Repeat("0", 40)},
	} {
		if _, err := read(c.uid, c.repo, c.commit); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			t.Errorf("%s: %v; want error %v %v", name, err, fault.Auth, fault.CodeNotFound)
		}
	}
	if _, err := read(w.as("nobody"), "kit", commit); !fault.Is(err, fault.Auth, fault.CodeReauth) {
		t.Errorf("a token that nobody has: %v", err)
	}
}

// TestSnapshotBounded checks that a snapshot over a limit is refused as a whole.
func TestSnapshotBounded(t *testing.T) {
	many := map[string]string{}
	for i := range container.SnapshotFiles + 1 {
		many[fmt.Sprint("f", i)] = "x"
	}
	for name, files := range map[string]map[string]string{"many files": many,
		"much": {"a": strings.Repeat("x", container.SnapshotBytes), "b": "x"}} {
		s, w, commit := snapshots(t, files, nil)
		_, err := s.Snapshot(t.Context(), tool.Call{UID: w.as(toolstest.GoogleUser)}, toolstest.GoogleUser, "kit",
			commit)
		if !fault.Is(err, fault.Policy, github.CodeTooLarge) || w.GitHub.Calls("git/get-blob") != 0 {
			t.Errorf("%s: %v, after %d files", name, err, w.GitHub.Calls("git/get-blob"))
		}
	}
}

// TestSnapshotOnEmulate reads a snapshot from an independent implementation of GitHub.
func TestSnapshotOnEmulate(t *testing.T) {
	base := emulate.StartGitHub(t)
	day := server{uid: emulate.GitHubUser, owner: emulate.GitHubUser,
		set: github.New(emulated{}, github.Options{Endpoint: base + "/"})}
	out, err := day.call(t, github.ListFiles, day.in(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(out), `"commit":"`)
	commit, _, _ := strings.Cut(rest, `"`)
	s := github.NewSnapshots(emulated{}, github.Options{Endpoint: base + "/"})
	got, err := s.Snapshot(t.Context(), tool.Call{UID: emulate.GitHubUser}, emulate.GitHubUser, "site", commit)
	if err != nil || len(got.Entries) == 0 || !strings.HasPrefix(string(got.Entries[0].Content), "# ") {
		t.Errorf("at %s there is %+v, %v", commit, got, err)
	}
}
