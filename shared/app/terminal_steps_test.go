package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestTerminalSteps requests a command that no shell can parse, and one that leaves a program running. The steps show
// the text of the first, and the program that was ended with the second, as its card had announced. The model gets the
// output as text, with the facts in separate fields.
func TestTerminalSteps(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo 'a\u202eb", "nohup sleep 1000 >/dev/null 2>&1 & echo on"}}
	h.SetModel(m.turn)
	asked := h.askOn("Do it.")
	if len(asked.Approvals) != 1 || !strings.Contains(string(asked.Body), "is ended when the command ends") ||
		strings.Contains(string(asked.Body), "beyond the end") {
		t.Fatalf("%s", asked.Body)
	}
	done := h.approve(asked)
	var v struct {
		Actions []struct {
			Step struct {
				Kind, Command string
				LeftBehind    int
				Ended         []string
			}
		}
	}
	if err := json.Unmarshal(done.Body, &v); err != nil || done.Status != "completed" || len(v.Actions) != 3 {
		t.Fatalf("%v: %s; want done.Status “completed”, len(v.Actions) 3", err, done.Body)
	}
	if s := v.Actions[0].Step; s.Kind != "error" || s.Command != "echo 'a⟨U+202E⟩b" {
		t.Errorf("the step of what cannot be read is %+v", s)
	}
	if s := v.Actions[1].Step; s.LeftBehind != 1 || !slices.Equal(s.Ended, []string{"sleep"}) {
		t.Errorf("the step of what was left running is %+v", s)
	}
	var told struct {
		Output   string
		ExitCode *int
		Ended    []string
	}
	err := json.Unmarshal([]byte(m.responses[1]), &told)
	if err != nil || told.Output != "on\n" || told.ExitCode == nil || !slices.Equal(told.Ended, []string{"sleep"}) {
		t.Errorf("the model reads %s: %v", m.responses[1], err)
	}
}
