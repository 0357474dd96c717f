package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// A command whose journal cannot be written has run. Its outcome is left to the user: it is neither repeated nor
// reported to the model as not done.
func TestTerminalWithoutJournal(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo x >>witness; until [ -f .countersign ]; do rm -rf .countersign; " +
		"touch .countersign; done"}}
	h.SetModel(m.turn)
	got := h.approve(h.askOn("Clean up."))
	if len(got.Approvals) != 1 || got.Approvals[0].Kind != "review" || len(m.responses) != 0 {
		t.Errorf("the model read %q: %s", m.responses, got.Body)
	}
	if h.witness() != "x\n" || !strings.Contains(string(got.Body), "home was emptied") {
		t.Errorf("%q: %s; want h.witness() %q, got.Body with “home was emptied”", h.witness(), got.Body, "x\n")
	}
}

// A command that follows another one in its turn needs approval if a link there leads out of the readable folders. The
// card names its directory.
func TestTerminalLinkAfterCommand(t *testing.T) {
	logs, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	below := filepath.Join(logs, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(below, "file")); err != nil {
		t.Fatal(err)
	}
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
	h.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		command := func(line string) fakegemini.Call {
			return fakegemini.Call{Name: "run_command", Args: testkit.Command(line)}
		}
		switch len(r.Responses()) {
		case 0:
			return fakegemini.Turn{Calls: []fakegemini.Call{command("cd " + logs)}}
		case 1:
			return fakegemini.Turn{Calls: []fakegemini.Call{command("cd below"), command("cat file")}}
		}
		return fakegemini.Turn{Text: "Done."}
	})
	asked := h.approve(h.approve(h.askOn("Look.")))
	if len(asked.Approvals) != 1 || !strings.Contains(string(asked.Body), "in "+below) ||
		!strings.Contains(string(asked.Body), "leads to a file outside") {
		t.Fatalf("%s", asked.Body)
	}
	if got := h.approve(asked); got.Status != "completed" || !strings.HasSuffix(h.steps(got), ": CANARY\n") {
		t.Errorf("%s; want got.Status “completed”, h.steps(got) that ends with %q", got.Body, ": CANARY\n")
	}
}

// On a host without bash, commands run in its sh, even before its capabilities were checked.
func TestTerminalWithoutBash(t *testing.T) {
	h := onTerminalOf(t, sshd.Options{Shell: "busybox", Path: sshd.Busybox(t)}, map[string]any{"autoRun": "read_only"})
	m := &commands{lines: []string{"pwd", "echo x >>witness"}}
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(m.responses) != 1 || !strings.Contains(m.responses[0], h.srv.Home) || len(asked.Approvals) != 1 {
		t.Fatalf("the model read %q: %s", m.responses, asked.Body)
	}
	got := h.approve(asked)
	if got.Status != "completed" || !strings.Contains(h.steps(got), "completed pwd: ") || h.witness() != "x\n" {
		t.Errorf("%q: %s; want got.Status “completed”, h.steps(got) with “completed pwd: ”, h.witness() %q",
			h.witness(), got.Body, "x\n")
	}
}

// The first command on a host without bash needs approval. What only bash can parse does not run.
func TestTerminalWithoutBashApproved(t *testing.T) {
	h := onTerminalOf(t, sshd.Options{Shell: "busybox", Path: sshd.Busybox(t)}, nil)
	m := &commands{lines: []string{"cat <(echo x) >>witness", "echo x >>witness"}}
	h.SetModel(m.turn)
	asked := h.approve(h.askOn("Do it."))
	if len(asked.Approvals) != 1 || h.witness() != "" || !strings.Contains(h.steps(asked), "failed ") {
		t.Fatalf("%q: %s; want len(asked.Approvals) 1, h.witness() empty, h.steps(asked) with “failed ”",
			h.witness(), asked.Body)
	}
	if got := h.approve(asked); got.Status != "completed" || h.witness() != "x\n" {
		t.Errorf("%q: %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "x\n")
	}
}
