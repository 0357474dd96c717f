package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTerminalGitStatus checks that git can read a repository without approval. If the repository's configuration names
// a program, approval is needed, on a card that says so, and git then runs as usual.
func TestTerminalGitStatus(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	dir, told := filepath.Join(h.srv.Home, "app"), filepath.Join(h.srv.Home, "told")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "one")
	m := &commands{lines: []string{"cd app", "git status", "git log --oneline -5", "git rev-parse --abbrev-ref HEAD",
		"git branch -a", "git diff --name-only", "git diff"}}
	h.SetModel(m.turn)
	asked := h.approve(h.askOn("Look."))
	if read := strings.Join(m.responses, ""); len(m.responses) != 6 || len(asked.Approvals) != 1 ||
		!strings.Contains(read, "On branch main") || !strings.Contains(read, "one") {
		t.Fatalf("the model read %q; %s", m.responses, asked.Body)
	}
	h.approve(asked)
	git("config", "core.fsmonitor", "touch '"+told+"'; false")
	m.lines = []string{"git status"}
	asked = h.askOn("Look again.")
	if _, err := os.Stat(told); err == nil || len(asked.Approvals) != 1 ||
		!strings.Contains(string(asked.Body), "can have git run another program") ||
		!strings.Contains(string(asked.Body), `"opaque"`) {
		t.Fatalf("%v; %s; want an error, len(asked.Approvals) 1, asked.Body with “can have git run another "+
			"program”, asked.Body with %q",
			err, asked.Body, `"opaque"`)
	}
	h.approve(asked)
	if _, err := os.Stat(told); err != nil {
		t.Errorf("what was approved did not run as it is: %v", err)
	}
}

// TestTerminalGitAfterTest asks for a repository first, in a folder that has one and in one that has none. What the
// shell makes of the answer is as without us, and a path on which something is mounted on demand needs approval.
func TestTerminalGitAfterTest(t *testing.T) {
	h := onTerminal(t, map[string]any{"autoRun": "read_only"})
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main",
		filepath.Join(h.srv.Home, "app")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"[ -d app/.git ] && git -C app status -sb":        "## No commits yet on main",
		"test -d app/.git && git -C app branch || echo z": `"output":""`,
		"[ -d .git ] && git status":                       `"exitCode":1`,
		"[ -d .git ] && git status || echo none":          "none",
		"ls && git status":                                "app",
		"git status || echo no":                           "git repository (or any of the parent directories): .git",
		"[ -d /dev/fd/3 ] && git -C app status":           "",
	} {
		m := &commands{lines: []string{line}}
		h.SetModel(m.turn)
		asked := h.askOn("Look.")
		h.deliver()
		if read := strings.Join(m.responses, ""); want != "" && !strings.Contains(read, want) ||
			(len(asked.Approvals) > 0) != (want == "") {
			t.Errorf("%s: the model read %q; %s", line, read, asked.Body)
		}
		if len(asked.Approvals) > 0 {
			h.resolve(asked.Approvals[0], "reject", nil)
			h.deliver()
		}
	}
}
