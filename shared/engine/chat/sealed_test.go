package chat_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// earlier is the output of the last release without conversation IDs, in an env like newEnv's: a history whose run had
// ended, the next history, which waits for the page and for an approval, and the stored documents of the run that waits
// for that approval.
type earlier struct {
	Ended     []json.RawMessage `json:"ended"`
	Waiting   []json.RawMessage `json:"waiting"`
	Documents []struct {
		Path  string               `json:"path"`
		Texts map[string]string    `json:"texts"`
		Times map[string]time.Time `json:"times"`
		Ints  map[string]int64     `json:"ints"`
		Data  json.RawMessage      `json:"data"`
	} `json:"documents"`
}

// newEarlierEnv is an env of this release with the documents of the earlier release.
func newEarlierEnv(t *testing.T, turns ...script.Turn) (*env, earlier) {
	t.Helper()
	w := newEnv(t, turns...)
	raw, err := os.ReadFile("testdata/sealed-before-conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	var e earlier
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	for _, d := range e.Documents {
		fields := map[string]any{}
		for k, v := range d.Texts {
			fields[k] = v
		}
		for k, v := range d.Times {
			fields[k] = v
		}
		for k, v := range d.Ints {
			fields[k] = v
		}
		var data bytes.Buffer // as it was stored: arguments are hashed byte for byte
		if err := json.Compact(&data, d.Data); err != nil {
			t.Fatal(err)
		}
		if _, err := w.core.Store.Commit(t.Context(), store.Create(d.Path, fields, data.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	return w, e
}

// noteOf returns the server's note in a history's last content.
func noteOf(t *testing.T, history []json.RawMessage) map[string]any {
	t.Helper()
	var last struct {
		Countersign map[string]any `json:"countersign"`
	}
	if err := json.Unmarshal(history[len(history)-1], &last); err != nil {
		t.Fatal(err)
	}
	return last.Countersign
}

// TestEarlierHistoryContinued continues a conversation that the earlier release has sealed. The conversation keeps its
// time zone, and gets an ID from its seal, whichever message comes first. A repeated message has one effect.
func TestEarlierHistoryContinued(t *testing.T) {
	likes := script.Turn{Calls: []script.Call{call("action_like", `{"stars":1}`)}}
	w, e := newEarlierEnv(t, likes, script.Turn{Text: "Liked."}, likes, script.Turn{Text: "Liked."}, likes,
		script.Turn{Text: "Liked again."})
	if n := noteOf(t, e.Ended); n["conversation"] != nil || n["seal"] == nil {
		t.Fatalf("this is no history of before: %v", n)
	}
	conversations := map[any]bool{}
	for i, id := range []string{"message-000000001", "message-000000001", "message-000000002"} {
		q := page("Like it.", e.Ended)
		q.MessageID = id
		r := w.reply(w.chat.Send(t.Context(), q, nil))
		if want := 1 + i/2; r.Type != "response" || len(w.did) != want {
			t.Fatalf("message %s: %+v, %d effects, want %d", id, r, len(w.did), want)
		}
		conversations[noteOf(t, r.History)["conversation"]] = true
	}
	if len(conversations) != 1 || conversations[nil] {
		t.Errorf("it became the conversations %v", conversations)
	}
	if s := read(w.model.Requests()[0]); !strings.Contains(s, "Europe/Berlin") {
		t.Errorf("its zone is lost:\n%s", s)
	}
}

// TestEarlierHistoryAnswered answers the page's waiting call in such a history, and approves the waiting action, which
// the earlier release has started. The action is done once, and the model gets both results, even if the answer is sent
// twice.
func TestEarlierHistoryAnswered(t *testing.T) {
	w, e := newEarlierEnv(t, script.Turn{Text: "Rated."}, script.Turn{Text: "Rated."})
	open, _, err := w.chat.Ledger.(*records.Records).Pending(t.Context(), alice, "", 10)
	if err != nil || len(open) != 1 {
		t.Fatalf("%v %v", err, open)
	}
	page := ""
	for _, c := range noteOf(t, e.Waiting)["calls"].([]any) {
		if c := c.(map[string]any); c["page"] == true {
			page = c["id"].(string)
		}
	}
	answered := chat.Result{CallID: page, Result: `{"found":3}`}
	r := w.answer(e.Waiting, answered)
	same(t, "what still waits", names(r.Calls), []string{"server-action action_submitRating"})
	w.decide(&open[0], run.ApproveOnce)
	for i, again := range []func() *chat.Reply{func() *chat.Reply {
		return w.answer(
			r.History)
	}, func() *chat.Reply { return w.answer(e.Waiting, answered) }} {
		if got := again(); got.Type != "response" || !strings.HasPrefix(got.Message, "Rated.") || len(w.did) != 1 {
			t.Fatalf("%+v, effects %v", got, w.did)
		}
		contents := w.model.Requests()[i].Contents
		rs, err := model.Responses(contents[len(contents)-1])
		if err != nil || len(rs) != 2 || string(rs[0].Result) != `{"ok":true}` ||
			string(rs[1].Result) != `{"found":3}` {
			t.Errorf("%v, the model was told %+v", err, rs)
		}
	}
}

// TestEarlierHistorySeal changes one part of such a history at a time, including parts that its release did not have.
func TestEarlierHistorySeal(t *testing.T) {
	note := func(field string, v any) func(*testing.T, []json.RawMessage) {
		return func(t *testing.T, h []json.RawMessage) {
			n := noteOf(t, h)
			n[field] = v
			h[len(h)-1] = with(t, h[len(h)-1], "countersign", n)
		}
	}
	for name, forge := range map[string]func(*testing.T, []json.RawMessage){
		"a conversation": note("conversation", "mine"),
		"a message":      note("message", "m1"),
		"a stem":         note("stem", "s"),
		"effects":        note("effects", []int{1}),
		"a run left": note("left",
			[]any{map[string]any{"runId": "lmfqaj67tqyzeqh4pdfxtflrue", "tool": "action_like"}}),
		"another time":   note("at", 4102444800),
		"another zone":   note("region", map[string]any{"timeZone": "Asia/Tokyo"}),
		"no calls":       note("calls", nil),
		"another's seal": note("seal", strings.Repeat("A", 43)),
		"other words": func(t *testing.T, h []json.RawMessage) {
			h[0] = with(t, h[0], "parts", []any{map[string]any{"text": "Bye."}})
		},
		"another role":    func(t *testing.T, h []json.RawMessage) { h[0] = with(t, h[0], "role", "model") },
		"a further field": func(t *testing.T, h []json.RawMessage) { h[1] = with(t, h[1], "x", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w, e := newEarlierEnv(t)
			h := slices.Clone(e.Waiting)
			forge(t, h)
			_, err := w.chat.Send(t.Context(), page("go on", h), nil)
			refused(t, err, fault.Validation, "history")
			_, err = w.chat.Answer(t.Context(), results(h), nil)
			refused(t, err, fault.Validation, "history")
			if len(w.did)+len(w.model.Requests()) != 0 {
				t.Error("something was done about it")
			}
		})
	}
	for name, q := range map[string]func(*env, *chat.Request){
		"another user's":  func(_ *env, q *chat.Request) { q.UID = bob },
		"another agent's": func(w *env, _ *chat.Request) { w.chat.Audience = "bank" },
		"an old one":      func(w *env, _ *chat.Request) { w.now = w.now.Add(31 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w, e := newEarlierEnv(t)
			r := page("go on", e.Ended)
			q(w, &r)
			_, err := w.chat.Send(t.Context(), r, nil)
			refused(t, err, fault.Validation, "history")
		})
	}
}
