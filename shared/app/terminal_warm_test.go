package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ran returns the keeper's verbs among the lines that the host ran, and every other line unchanged.
func (h *onHost) ran() (verbs []string) {
	for _, line := range h.srv.Lines() {
		if _, args, ok := strings.Cut(line, `/keeper-`); ok && !strings.Contains(line, "new.$$") {
			line = strings.Fields(args)[1]
		}
		verbs = append(verbs, line)
	}
	return verbs
}

// An approved command on a warm connection costs the host one line: the one that starts it.
func TestTerminalWarmRoundTrips(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo one >> witness", "echo two >> witness"}}
	h.SetModel(m.turn)
	asked := h.approve(h.askOn("Do it."))
	if first := h.ran(); slices.Index(first, "start") != len(first)-1 {
		t.Fatalf("the first command ran %q", first)
	}
	before := len(h.ran())
	if got := h.approve(asked); got.Status != "completed" || h.witness() != "one\ntwo\n" {
		t.Fatalf("%q: %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "one\ntwo\n")
	}
	if again := h.ran()[before:]; !slices.Equal(again, []string{"start"}) {
		t.Errorf("the second command ran %q", again)
	}
}

// Printing a file without approval costs no further line, however many folders and files there are: the line that
// starts the command reports where they lead.
func TestTerminalWarmLinks(t *testing.T) {
	logs, more := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte("in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := onTerminal(t, map[string]any{"autoRun": "read_only", "readPaths": []string{logs, more}})
	missing := "cat " + logs + "/a " + more + "/no/where"
	m := &commands{lines: []string{"pwd", "cat " + logs + "/a " + logs + "/b", missing}}
	h.SetModel(m.turn)
	asked := h.askOn("Look.")
	if len(asked.Approvals) != 1 || len(m.responses) != 2 || !strings.Contains(m.responses[1], "in ain b") ||
		!strings.Contains(string(asked.Body), "leads nowhere") {
		t.Fatalf("%q: %s; want len(asked.Approvals) 1, len(m.responses) 2, m.responses[1] with “in ain b”, "+
			"asked.Body with “leads nowhere”",
			m.responses, asked.Body)
	}
	ran := h.ran()
	if ran = ran[slices.Index(ran, "start"):]; !slices.Equal(ran, []string{"start", "start", "start"}) {
		t.Errorf("the host ran %q", ran)
	}
}

// A cached state of a host does not hide that its journals were deleted. A card that was prepared for the old ones runs
// nothing, and says so; the next command creates them again.
func TestTerminalWarmHostEmptied(t *testing.T) {
	for name, gone := range map[string]string{"all": ".countersign", "the stamp": ".countersign/stamp"} {
		t.Run(name, func(t *testing.T) {
			h := onTerminal(t, nil)
			m := &commands{lines: []string{"echo one >> witness", "echo two >> witness", "echo three >> witness"}}
			h.SetModel(m.turn)
			asked := h.approve(h.askOn("Do it."))
			if err := os.RemoveAll(filepath.Join(h.srv.Home, gone)); err != nil {
				t.Fatal(err)
			}
			asked = h.approve(asked)
			if h.witness() != "one\n" || !strings.Contains(h.steps(asked), "failed host_restarted") {
				t.Fatalf("%q: %s; want h.witness() %q, h.steps(asked) with “failed host_restarted”",
					h.witness(), asked.Body, "one\n")
			}
			if got := h.approve(asked); got.Status != "completed" || h.witness() != "one\nthree\n" {
				t.Errorf("%q: %s; want got.Status “completed”, h.witness() %q", h.witness(), got.Body, "one\nthree\n")
			}
		})
	}
}
