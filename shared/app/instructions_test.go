package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
)

// TestTerminalInstructions compares the terminal agents' instructions with a file (002-10). The first five sentences
// come from the seed.
func TestTerminalInstructions(t *testing.T) {
	all := deploy(t, "TERMINAL=on").App.API.Loop.Agents
	var got strings.Builder
	for _, name := range []string{"terminal", "terminal-chat"} {
		text, err := all[name].Instructions(t.Context(), registry.State{})
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("== " + name + "\n" + text + "\n")
	}
	for _, sentence := range []string{"expert Linux/macOS system administrator", "small sequential steps",
		"Read the output of each command before", "Never run anything destructive without", "Call task_complete when"} {
		if !strings.Contains(got.String(), sentence) {
			t.Errorf("nothing is said of: %s", sentence)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/terminal.txt", []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/terminal.txt")
	if err != nil || string(want) != got.String() {
		t.Errorf("%v; go test ./shared/app -run Instructions -update writes it:\n%s", err, got.String())
	}
}
