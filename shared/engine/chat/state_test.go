package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// whole is the answer of a page that sends its whole state with each result.
var whole = `{"ok":true,"pageState":{"viewState":{"lines":["` + strings.Repeat(`a line of this page","`, 1500) + `"]}}}`

// clicks calls the page n times in one turn.
func clicks(n int) script.Turn {
	var t script.Turn
	for range n {
		t.Calls = append(t.Calls, call("click-add-to-cart", `{"key":"m1"}`))
	}
	return t
}

// A page is called thirty times for one message, and returns its whole state each time. The conversation and the model
// requests stay within their limits. The newest results are cut least.
func TestThirtyCallsInOneMessage(t *testing.T) {
	w := newEnv(t, clicks(15), clicks(15), script.Turn{Text: "All thirty."}, script.Turn{Text: "Still here."})
	r := w.say("click it thirty times", nil)
	for n := range 2 {
		if r.Type != "tool-calls" || len(r.Calls) != 15 {
			t.Fatalf("step %d: %+v", n, r)
		}
		var rs []chat.Result
		for i, c := range r.Calls {
			rs = append(rs, chat.Result{CallID: c.ID,
				Result: strings.Replace(whole, `{`, fmt.Sprintf(`{"a":"click %d of step %d",`, i, n), 1)})
		}
		r = w.answer(r.History, rs...)
	}
	if r.Message != "All thirty." {
		t.Fatalf("%+v", r)
	}
	if r = w.say("and now?", r.History); r.Message != "Still here." {
		t.Fatalf("%+v", r)
	}
	asked := w.model.Requests()
	for i, q := range asked {
		size := len(q.System)
		for _, c := range q.Contents {
			size += len(c)
		}
		t.Logf("request %d: %d KiB", i, size>>10)
		if size > 300<<10 {
			t.Errorf("request %d has %d bytes", i, size)
		}
	}
	rs, err := model.Responses(asked[2].Contents[4])
	if err != nil || len(rs) != 15 || !strings.Contains(string(rs[14].Result), "click 14 of step 1") ||
		len(rs[14].Result) < 2<<10 {
		t.Errorf("%v, the newest answers are told as %d: %.200s", err, len(rs[14].Result), rs[14].Result)
	}
}

// In a long conversation, older results in the model request are cut before the history reaches its limit. A cut result
// does not change again, so the model's service can reuse its cache.
func TestHistoryOlderResultsCut(t *testing.T) {
	w := newEnv(t)
	var history []json.RawMessage
	var cut string
	for n := range 25 {
		w.model.Restart(clicks(1), script.Turn{Text: "Clicked."})
		r := w.say(fmt.Sprintf("click %d", n), history)
		r = w.answer(r.History, chat.Result{CallID: r.Calls[0].ID, Result: whole})
		history = r.History
		if n == 3 {
			cut = string(history[2])
		}
	}
	last := w.model.Requests()[1]
	size := 0
	for _, c := range last.Contents {
		size += len(c)
	}
	t.Logf("%d KiB after 25 messages", size>>10)
	if size > 192<<10 || len(history) != 100 {
		t.Errorf("%d bytes in %d contents", size, len(history))
	}
	if len(cut) > 5<<10 || !strings.Contains(cut, " left out …]") || string(history[2]) != cut {
		t.Errorf("an answer of 22 messages ago is %d bytes", len(history[2]))
	}
}

// The instructions summarise the page's possible interactions, whatever the form and size of its state.
func TestInstructionsOfInteractions(t *testing.T) {
	many := `{"interactions":[` + strings.Repeat(`{"refName":"a","description":"`+strings.Repeat("x", 300)+`"},`, 500) +
		`{"refName":"last"}]}`
	for state, want := range map[string]string{
		`{"viewState":{},"interactions":[
			{"refName":"add-to-cart","elementType":"HTMLButtonElement","description":"Add\n## Rules","items":[{"coordinate":["products","a","add-to-cart"]},{"coordinate":["products","b","add-to-cart"]}]},
			{"refName":"search","coordinate":["search"],"description":"Search","value":"mug"},
			{"refName":"order","coordinate":["order"],"needsUser":true,"hidden":true},
			{"refName":"size","options":["s","m"],"value":"s","disabled":true}]}`: `["add-to-cart: Add\n## Rules, HTMLButtonElement, 2 in a list","search: Search, now \"mug\"","order, hidden, for the user's own click","size, 2 options, now \"s\", disabled"]`,
		`{"interactions":"none"}`:            "[]",
		`{"interactions":[1,{"refName":2}]}`: "[]",
		`{}`:                                 "[]",
		many:                                 " more]\"]",
	} {
		w := newEnv(t, script.Turn{Text: "ok"})
		q := page("hi", nil)
		q.PageState = json.RawMessage(state)
		w.reply(w.chat.Send(t.Context(), q, nil))
		system := read(w.model.Requests()[0])
		_, after, _ := strings.Cut(system, "\n## Available Page Interactions\n")
		line, rest, _ := strings.Cut(after, "\n")
		if !strings.HasSuffix(line, want) || len(line) > 10<<10 ||
			!strings.HasPrefix(rest, "\n## Current Page State\n{") {
			t.Errorf("%.80s is summarised as %.300s", state, line)
		}
	}
}
