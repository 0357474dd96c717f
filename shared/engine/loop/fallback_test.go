package loop_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// overload is the answer of a model that is overloaded.
var overload = script.Turn{Err: fault.New(fault.Model, model.CodeOverloaded, "Busy.")}

// withFallbacks returns an env whose model a has the fallbacks b and c.
func withFallbacks(t *testing.T) *env {
	w := newEnv(t)
	w.model.Become("gemini", "a")
	w.loop.Fallbacks = []string{"b", "c"}
	w.assistant().Limits.ModelCalls = 10
	return w
}

// askedModels returns the models that were asked, in order.
func askedModels(w *env) string {
	var names []string
	for _, r := range w.model.Requests() {
		names = append(names, r.Settings.Name)
	}
	return strings.Join(names, " ")
}

// TestFallback checks which models are asked when models are overloaded, for each kind of history: the run stays with
// the model that answered, and no model gets the signature of another (the scripted model refuses it).
func TestFallback(t *testing.T) {
	call, answer := callOf("lookup"), script.Turn{Text: "Done."}
	failed := func(code fault.Code) script.Turn { return script.Turn{Err: fault.New(fault.Model, code, "No.")} }
	quota := failed(model.CodeQuota)
	for name, c := range map[string]struct {
		turns []script.Turn
		asked string // the run's own model has no name in a request
		fails fault.Code
	}{
		"none is busy":           {[]script.Turn{call, answer}, " ", ""},
		"at once":                {[]script.Turn{overload, answer}, " b", ""},
		"no quota":               {[]script.Turn{quota, quota, answer}, " b c", ""},
		"after a call":           {[]script.Turn{call, overload, answer}, "  b", ""},
		"stays":                  {[]script.Turn{call, overload, call, call, answer}, "  b b b", ""},
		"and the next":           {[]script.Turn{overload, call, overload, overload, call, answer}, " b b  c c", ""},
		"and back":               {[]script.Turn{overload, call, overload, call, overload, answer}, " b b   b", ""},
		"all are busy":           {[]script.Turn{call, overload, quota, overload}, "  b c", model.CodeOverloaded},
		"the first is not busy":  {[]script.Turn{failed(model.CodeRefused)}, "", model.CodeRefused},
		"a fallback is not busy": {[]script.Turn{overload, failed(model.CodeBlocked)}, " b", model.CodeBlocked},
	} {
		for _, history := range []registry.History{registry.HistoryNone, registry.HistoryWords,
			registry.HistoryVerbatim} {
			t.Run(name+"/"+string(history), func(t *testing.T) {
				w := withFallbacks(t)
				w.assistant().History = history
				k := &talk{env: w}
				v, _ := k.ask("Look it up.", c.turns...)
				if got := askedModels(w); got != c.asked || v.ErrorReason != c.fails {
					t.Errorf("asked %q, want %q; the run is %s, %s", got, c.asked, v.Status, v.Message)
				}
				if n := w.model.Left(); n > 0 {
					t.Errorf("%d answers are left", n)
				}
				// the next run asks its own model first, and its history is valid for that
				if v, _ = k.ask("Again.", answer); v.Status != run.Completed || k.lastModel() != "" {
					t.Errorf("the next run is %s: %s, by %q", v.Status, v.Message, k.lastModel())
				}
			})
		}
	}
}

func (w *talk) lastModel() string {
	requests := w.model.Requests()
	return requests[len(requests)-1].Settings.Name
}

// TestFallbackContents checks that a fallback reads the calls of the model before as text, and its own as its own.
func TestFallbackContents(t *testing.T) {
	for _, history := range []registry.History{registry.HistoryNone, registry.HistoryVerbatim} {
		w := withFallbacks(t)
		w.assistant().History = history
		k := &talk{env: w}
		v, said := k.ask("Look it up.", callOf("lookup"), overload, callOf("lookup"), script.Turn{Text: "Done."})
		text := joined(said)
		if !strings.Contains(text, "You called lookup with") || strings.Count(text, `"functionCall"`) != 1 ||
			strings.Count(text, `"functionResponse"`) != 1 {
			t.Errorf("%s: the fallback reads\n%s", history, text)
		}
		last := w.model.Requests()[3]
		if !strings.Contains(last.System, "[record ") {
			t.Errorf("%s: nothing explains the record: %s", history, last.System)
		}
		if a := v.Actions; a[0].ModelName != "a" || a[1].ModelName != "b" {
			t.Errorf("%s: the calls are recorded as those of %q and %q", history, a[0].ModelName, a[1].ModelName)
		}
	}
}

// halting is a model that shows some text and then fails.
type halting struct {
	asked int
	err   error
}

func (*halting) Name() string { return "a" }

func (m *halting) Generate(_ context.Context, _ model.Request, delta func(string)) (*model.Reply, error) {
	if m.asked++; delta != nil {
		delta("I thi")
	}
	return nil, m.err
}

// TestFallbackAfterText checks that no other model is asked once text was shown, and that without a reader one is.
func TestFallbackAfterText(t *testing.T) {
	for _, unread := range []bool{false, true} {
		w, m := withFallbacks(t), &halting{err: overload.Err}
		w.loop.Model = m
		start, want := loop.StartRequest{UID: "ana"}, 3
		if !unread {
			start.Sink, want = func(unit.Update) {}, 1
		}
		v, err := w.loop.Start(t.Context(), start, loop.Prompt{Text: "Hi."})
		if err != nil || m.asked != want || v.ErrorReason != model.CodeOverloaded {
			t.Errorf("unread %t: %d requests, want %d; %v, %v", unread, m.asked, want, v, err)
		}
	}
}

// TestFallbackCosts checks that a run pays the price of the model that answered, and that a model without a price is
// not asked if the run's cost is limited.
func TestFallbackCosts(t *testing.T) {
	w := withFallbacks(t)
	price := func(micros int64) run.Price { return run.Price{Input: micros, Output: micros, Cached: micros} }
	w.assistant().Limits.Budget = run.Budget{Money: 1_000_000, Prices: map[string]run.Price{"a": price(1_000_000),
		"c": price(3_000_000)}}
	used := model.Usage{Prompt: 100, Total: 100}
	first, last := callOf("lookup"), script.Turn{Text: "Done.", Usage: used}
	first.Usage = used
	v, _ := (&talk{env: w}).ask("Look it up.", first, overload, last)
	if got := askedModels(w); got != "  c" || v.Status != run.Completed {
		t.Fatalf("asked %q; %s: %s", got, v.Status, v.Message)
	}
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		t.Fatal(err)
	}
	var costs []int64
	for _, e := range events {
		if e.Turn != nil {
			costs = append(costs, e.Turn.Cost)
		}
	}
	if len(costs) != 2 || costs[1] != 3*costs[0] || costs[0] == 0 {
		t.Errorf("the answers cost %v", costs)
	}
}

// TestSummaryByAFallback checks that a fallback summarises the conversation if the run's own model is overloaded.
func TestSummaryByAFallback(t *testing.T) {
	w := withFallbacks(t)
	w.assistant().History = registry.HistoryVerbatim
	w.assistant().Compression = registry.Compression{Window: 100_000, Threshold: 0.5}
	k := &talk{env: w}
	for range 3 {
		k.ask(strings.Repeat("long ", 2000), callOf("lookup"), script.Turn{Text: "Done."})
	}
	w.model.Restart(overload, script.Turn{Text: "They looked it up."})
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", ThreadID: k.thread}, loop.Compress{})
	if err != nil || v.Status != run.Completed || askedModels(w) != " b" {
		t.Errorf("asked %q; %v, %v", askedModels(w), v, err)
	}
}

// TestFallbackWithEarlierSigner checks that a run whose answers have no known signer stays with its model.
func TestFallbackWithEarlierSigner(t *testing.T) {
	w := withFallbacks(t)
	w.loop.Fallbacks = nil
	after := overload
	after.Hook = func(context.Context, model.Request) { w.loop.Fallbacks = []string{"b"} }
	v, _ := (&talk{env: w}).ask("Look it up.", callOf("lookup"), after)
	if got := askedModels(w); got != " " || v.ErrorReason != model.CodeOverloaded {
		t.Errorf("asked %q; %s %s", got, v.Status, v.ErrorReason)
	}
	if !slices.ContainsFunc(w.model.Requests()[1].Contents, func(c json.RawMessage) bool {
		return strings.Contains(string(c), "thoughtSignature")
	}) {
		t.Error("the answer has no signature")
	}
}
