package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const alice, bob = "alice", "bob"

// env is a chat with a core, and a scripted model that is as strict as the service.
type env struct {
	t     *testing.T
	now   time.Time
	model *script.Model
	core  *loop.Loop
	chat  *chat.Chat
	did   []string // the effects of actions, in order
	queue []queue.Message
	fails bool // whether rate fails
}

type query struct {
	Query string `json:"query"`
}
type rating struct {
	Stars int `json:"stars"`
}
type done struct {
	OK bool `json:"ok"`
}

func newEnv(t *testing.T, turns ...script.Turn) *env {
	w := &env{t: t, now: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC), model: script.New(turns...)}
	clock := func() time.Time { return w.now }
	actions := tool.NewSet(
		tool.Define(tool.Def[query, done]{Name: "action_searchProducts", Description: "Search the products.",
			Execute: func(_ context.Context, c tool.Call, in query) (done, error) {
				w.did = append(w.did, "search "+in.Query)
				return done{true}, nil
			}}),
		tool.Define(tool.Def[rating, done]{Name: "action_submitRating", Description: "Rate.", SideEffect: true,
			Preview: func(in rating) tool.Preview { return tool.Preview{Title: fmt.Sprintf("Rate %d", in.Stars)} },
			Execute: w.rate}),
		tool.Define(tool.Def[rating, done]{Name: "action_like", Description: "Like.", SideEffect: true,
			Approval: tool.NotRequired,
			Preview:  func(in rating) tool.Preview { return tool.Preview{Title: "Like"} }, Execute: w.rate}))
	page := registry.Agent{Name: run.Page, Page: true, Instructions: chat.Instructions("", actions),
		Present:  chat.Present,
		History:  registry.HistoryNone,
		OnReject: registry.RejectCompletes, Limits: registry.Limits{ModelCalls: 6, ApprovalTTL: 24 * time.Hour,
			Deadline: 72 * time.Hour, ModelTimeout: 30 * time.Second, ToolTimeout: 10 * time.Second, MaxOpen: 3,
			MaxPerDay: 60}}
	assistant := page // of the runs that an earlier release began for pages
	st := memory.New(clock)
	w.core = loop.New(unit.Env{Store: st, Queue: w, Model: w.model, Tools: actions, Now: clock, Sleep: noWait,
		Agents: registry.Set{run.Assistant: &assistant, run.Page: &page}})
	w.chat = &chat.Chat{Core: w.core, Ledger: &records.Records{Store: st, Now: clock}, Audience: "shop",
		Key: chat.Key{[]byte("0123456789abcdef0123456789abcdef")}}
	return w
}

func noWait(ctx context.Context, _ time.Duration) error { return wait.For(ctx, 0) }

func (w *env) rate(_ context.Context, c tool.Call, in rating) (done, error) {
	if w.fails {
		return done{}, errors.New("down")
	}
	w.did = append(w.did, fmt.Sprintf("%s %d %s", c.UID, in.Stars, c.ActionID[:4]))
	return done{true}, nil
}

// Resume makes the env its own queue.
func (w *env) Resume(_ context.Context, m queue.Message) error {
	w.queue = append(w.queue, m)
	return nil
}
func (w *env) Close() error { return nil }

func (w *env) deliver() {
	w.t.Helper()
	for _, m := range w.queue {
		if _, err := w.core.Resume(w.t.Context(), m, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	w.queue = nil
}

func (w *env) decide(ap *run.ApprovalView, d run.Decision) {
	w.t.Helper()
	if _, err := w.core.Resolve(w.t.Context(),
		approval.Resolution{UID: alice, ApprovalID: ap.ApprovalID, Decision: d, ArgsHash: ap.ArgsHash}); err != nil {
		w.t.Fatal(err)
	}
	w.deliver()
}

// expire moves the clock past the expiry of everything that waits.
func (w *env) expire() {
	w.t.Helper()
	w.now = w.now.Add(25 * time.Hour)
	if _, err := w.core.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.deliver()
}

// page returns a request with the data that a page sends each time.
func page(message string, history []json.RawMessage) chat.Request {
	return chat.Request{UID: alice, Message: message, History: history,
		PageState: json.RawMessage(`{"viewState":{"cart":0}}`), Tools: []chat.ToolDefinition{
			{Name: "click-add-to-cart", Description: "Click.", Category: chat.PageAutomation,
				InputSchema: json.RawMessage(
					`{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}`)},
			{Name: "fill-search", Description: "Fill.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}}}`)},
		}}
}

func results(history []json.RawMessage, rs ...chat.Result) chat.Request {
	r := page("", history)
	r.Results = rs
	return r
}

// roundTrip parses and prints a history as a browser does. Like JavaScript, it keeps numbers as doubles.
func roundTrip(t *testing.T, history []json.RawMessage) []json.RawMessage {
	t.Helper()
	var values []any
	b, err := json.Marshal(history)
	if err == nil {
		err = json.Unmarshal(b, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make([]json.RawMessage, len(values))
	for i, v := range values {
		if out[i], err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func (w *env) say(message string, history []json.RawMessage) *chat.Reply {
	w.t.Helper()
	return w.reply(w.chat.Send(w.t.Context(), page(message, history), nil))
}

func (w *env) answer(history []json.RawMessage, rs ...chat.Result) *chat.Reply {
	w.t.Helper()
	return w.reply(w.chat.Answer(w.t.Context(), results(history, rs...), nil))
}

func (w *env) reply(r *chat.Reply, err error) *chat.Reply {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v: %v", err, errors.Unwrap(err))
	}
	r.History = roundTrip(w.t, r.History)
	return r
}

func refused(t *testing.T, err error, class fault.Class, field string) {
	t.Helper()
	f := fault.As(err)
	if err == nil || f.Class != class || f.Field != field {
		t.Fatalf("got %v, want %s of %q", err, class, field)
	}
}

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func names(calls []chat.Pending) []string {
	var out []string
	for _, c := range calls {
		out = append(out, string(c.Category)+" "+c.Name)
	}
	return out
}

// with changes one field of the history's last content.
func with(t *testing.T, content json.RawMessage, field string, value any) json.RawMessage {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		t.Fatal(err)
	}
	fields = maps.Clone(fields)
	fields[field] = value
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read returns all that the model reads in a request: the instructions, and the texts of the contents.
func read(r model.Request) string {
	all := r.System
	for _, raw := range r.Contents {
		var c struct{ Parts []struct{ Text string } }
		if json.Unmarshal(raw, &c) == nil {
			for _, p := range c.Parts {
				all += "\n" + p.Text
			}
		}
	}
	return all
}
