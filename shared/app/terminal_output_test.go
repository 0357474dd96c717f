package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// outputOf returns the stored output of a run's action and the output in the run's events, and checks that they are
// equal.
func (h *onHost) outputOf(runID, actionID string) string {
	h.t.Helper()
	kept := string(h.call("GET", "/api/agent/runs/"+runID+"/output/"+actionID, "").Body)
	var told strings.Builder
	for line := range strings.Lines(string(h.call("GET", "/api/agent/runs/"+runID+"/events", "").Body)) {
		var l struct {
			Type, ActionID string
			Offset         int
			Data           []byte
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			h.t.Fatal(err)
		}
		if l.Type == "output" && l.ActionID == actionID {
			if l.Offset != told.Len() {
				h.t.Errorf("bytes from %d on come after %d", l.Offset, told.Len())
			}
			told.Write(l.Data)
		}
	}
	if told.String() != kept {
		h.t.Errorf("%q is kept, and the events have %q", kept, told.String())
	}
	return kept
}

// A command's output is stored as printed, with its colours, except what must not be stored. The step has the text that
// the model got.
func TestTerminalOutputStored(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{`printf '\033[31mred\033[0m\n'; echo key AKIAIOSFODNN7EXAMPLE end; seq 3`}}
	h.SetModel(m.turn)
	got := h.approve(h.askOn("Print."))
	if got.Status != "completed" || len(got.Actions) != 2 {
		t.Fatalf("%s; want got.Status “completed”, len(got.Actions) 2", got.Body)
	}
	kept := h.outputOf(got.RunID, got.Actions[0].ActionID)
	if !strings.Contains(kept, "\x1b[31mred") || strings.Contains(kept, "AKIAIOSFODNN7EXAMPLE") ||
		!strings.Contains(kept, "end\r\n1\r\n2\r\n3\r\n") {
		t.Errorf("%q is kept", kept)
	}
	var run struct {
		Actions []struct{ Step struct{ Kind, Output string } }
	}
	if err := json.Unmarshal(h.call("GET", "/api/agent/runs/"+got.RunID, "").Body, &run); err != nil {
		t.Fatal(err)
	}
	step := run.Actions[0].Step
	output, err := json.Marshal(step.Output)
	if err != nil || step.Kind != "command" || !strings.Contains(step.Output, "key [redacted] end") ||
		!strings.Contains(m.responses[0], string(output)) {
		t.Errorf("the step is %+v, and the model was told %s", step, m.responses[0])
	}
	if last := run.Actions[1].Step; last.Kind != "complete" || last.Output != "All is well." {
		t.Errorf("the end is %+v", last)
	}
}

// A client that drives the loop itself gets the same: a card, the command on the host after an approval, and the output
// from the record.
func TestTerminalTurnByClient(t *testing.T) {
	h := onTerminal(t, nil)
	m := &commands{lines: []string{"echo one >> witness; cat witness"}}
	h.SetModel(m.turn)
	take := func(history any, header ...string) (a testkit.Answer, parts string) {
		t.Helper()
		a, err := h.as("ana")(t.Context(), http.MethodPost, "/api/gemini/agent",
			map[string]any{"history": history, "terminalId": h.terminal}, header...)
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%v %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
		}
		var r struct{ Parts json.RawMessage }
		if err := json.Unmarshal(a.Body, &r); err != nil {
			t.Fatal(err)
		}
		return a, string(r.Parts)
	}
	words := json.RawMessage(`[{"role":"user","parts":[{"text":"Look."}]}]`)
	first, parts := take(words)
	if len(first.Calls) != 1 || first.Calls[0].Approval == nil || !strings.Contains(parts, `"run_command"`) ||
		h.witness() != "" {
		t.Fatalf("%s; want len(first.Calls) 1, first.Calls[0].Approval set, parts with %q, h.witness() empty",
			first.Body, `"run_command"`)
	}
	if got := h.resolve(*first.Calls[0].Approval, "approve_once", nil); got.HTTP != http.StatusOK {
		t.Fatalf("%s; want got.HTTP %v", got.Body, http.StatusOK)
	}
	h.deliver()
	last, parts := take(first.History)
	if want := `"record":"Ran “echo one >> witness; cat witness”."`; !strings.Contains(string(last.Body), want) {
		t.Errorf("its answer has no %s: %s", want, last.Body)
	}
	if h.witness() != "one\n" || len(last.Calls) != 0 || !strings.Contains(parts, "All is well.") ||
		len(m.responses) != 1 || !strings.Contains(m.responses[0], `"output":"one`) {
		t.Errorf("%q, the model read %q: %s", h.witness(), m.responses, last.Body)
	}
	h.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: "Yes, I restarted it."} })
	var sealed []json.RawMessage
	if err := json.Unmarshal(last.History, &sealed); err != nil {
		t.Fatal(err)
	}
	claim, parts := take(append(sealed, json.RawMessage(`{"role":"user","parts":[{"text":"Is it?"}]}`)))
	if !strings.Contains(parts, `"Yes, I restarted it."`) ||
		!strings.Contains(string(claim.Body), `"record":"Nothing was sent or changed in this run."`) {
		t.Errorf("%s; want parts with %q, claim.Body with %q",
			claim.Body, `"Yes, I restarted it."`, `"record":"Nothing was sent or changed in this run."`)
	}
}
