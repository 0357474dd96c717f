package loop_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const sumForm = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`

// TestTypedAnswerOnEachGeneration requests an answer in a form, with a tool, from both generations of Gemini, until the
// call is forced. The service accepts each request.
func TestTypedAnswerOnEachGeneration(t *testing.T) {
	for name, gen := range map[string]fakegemini.Generation{"2": fakegemini.Gemini2, "3": fakegemini.Gemini3} {
		t.Run(name, func(t *testing.T) {
			answer := func(args any) fakegemini.Turn {
				return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool.FinalAnswer, Args: args}}}
			}
			turns := []fakegemini.Turn{
				{Calls: []fakegemini.Call{{Name: "lookup", Args: aWord}, {Name: "lookup", Args: aWord}}},
				{Text: "It is four."}, {Text: "Four."}, answer(map[string]any{"sum": "four"}), {Text: "Four!"},
				answer(map[string]any{"sum": 4}), {Text: "Four, as I said."}}
			served := fakegemini.New(func(fakegemini.Request) fakegemini.Turn {
				next := turns[0]
				turns = turns[1:]
				return next
			})
			served.Generation = gen
			server := httptest.NewServer(served)
			defer server.Close()
			w := newEnv(t)
			asked, err := gemini.New(t.Context(), gemini.Config{APIKey: "k", BaseURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			w.loop.Model, w.assistant().Limits.ModelCalls = asked, 6
			w.assistant().History = registry.HistoryVerbatim
			v, err := w.loop.Start(t.Context(),
				loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "two and two?", Answer: []byte(sumForm)})
			if err != nil || v.Status != run.Completed || v.Summary != `{"sum":4}` || len(served.Refused()) > 0 {
				t.Fatalf("%v, %+v, refused %q", err, v, served.Refused())
			}
			var modes []string
			for _, r := range served.Requests() {
				modes = append(modes, r.Mode+strings.Join(r.Allowed, ","))
			}
			const forced = "ANY" + tool.FinalAnswer
			if want := []string{"", "", "", forced, "", forced}; !slices.Equal(modes, want) {
				t.Errorf("the modes are %q, want %q", modes, want)
			}
			v, err = w.loop.Start(t.Context(),
				loop.StartRequest{UID: "ana", ThreadID: v.ThreadID}, loop.Prompt{Text: "sure?"})
			if err != nil || v.Status != run.Completed || len(served.Refused()) > 0 {
				t.Errorf("a later run: %v, %+v, refused %q", err, v, served.Refused())
			}
		})
	}
}

// TestInputFixedForRun lets another process continue a run. It uses the run's original instructions and tools, whatever
// the agent has by then. Tools that the process does not have are not offered.
func TestInputFixedForRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		bob := script.Call{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}
		w.model.Then(script.Turn{Calls: []script.Call{bob}},
			script.Turn{Calls: []script.Call{{Name: "draft", Args: bob.Args}, {Name: "lookup", Args: aWord}}},
			script.Turn{Text: "So."})
		began := loop.Prompt{Text: "tell bob", Instructions: "You are mine.",
			Tools: []string{"lookup", "send", "gone"}}
		v, err := w.loop.Start(t.Context(), byAna, began)
		if err != nil {
			t.Fatal(err)
		}
		w.approve(t, v.RunID, 1)
		w.loop = w.process()
		w.assistant().Instructions = registry.Text("You are another's.")
		w.assistant().Model = model.Settings{Calling: model.CallingValidated, Allowed: []string{"draft", "lookup"}}
		if v, err = w.loop.Advance(t.Context(), v.RunID, nil); err != nil ||
			v.Summary != "Sent it to bob@x.org.\nSo." &&
				v.Summary != "So." {
			t.Fatalf("%v, %+v", err, v)
		}
		if a := v.Actions[1]; a.Tool != "draft" || a.ErrorReason != "unknown_tool" {
			t.Errorf("a call of a tool that the run did not begin with: %+v", a)
		}
		for i, r := range w.model.Requests() {
			var names []string
			for _, s := range r.Tools {
				names = append(names, s.Name)
			}
			if r.System != "You are mine." || fmt.Sprint(names) != "[lookup send]" ||
				slices.Contains(r.Settings.Allowed, "draft") {
				t.Errorf("request %d: %q, %v, %v", i+1, r.System, names, r.Settings.Allowed)
			}
		}
		w.model.Restart(script.Turn{Text: "So."})
		began.Tools = []string{}
		if _, err = w.loop.Start(t.Context(), byAna, began); err != nil {
			t.Fatal(err)
		}
		if r := w.model.Requests()[0]; len(r.Tools) > 0 {
			t.Errorf("without a tool %d are offered", len(r.Tools))
		}
		began.Instructions = strings.Repeat("x", 256<<10+1)
		if _, err := w.loop.Start(t.Context(), byAna, began); fault.As(err).Field != "instructions" {
			t.Errorf("instructions that are too long: %v", err)
		}
	})
}
