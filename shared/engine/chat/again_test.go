package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

func like(stars int) script.Call { return call("action_like", fmt.Sprintf(`{"stars":%d}`, stars)) }
func rate(stars int) script.Call {
	return call("action_submitRating", fmt.Sprintf(`{"stars":%d}`, stars))
}

// message is a page's message with an ID.
func message(id int, words string, history []json.RawMessage) chat.Request {
	r := page(words, history)
	r.MessageID = fmt.Sprintf("message-%016d", id)
	return r
}

func (w *env) send(r chat.Request) *chat.Reply {
	w.t.Helper()
	return w.reply(w.chat.Send(w.t.Context(), r, nil))
}

// The same text in another message requests another effect: in a new conversation, in another tab, or in the same
// conversation, and with or without a message ID from the page.
func TestRepeatEqualText(t *testing.T) {
	for name, id := range map[string]func(
		n int) int{"ids of the page": func(n int) int { return n }, "ids of the server": func(int) int { return 0 }} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			asks := func(n int, history []json.RawMessage) *chat.Reply {
				w.model.Restart(script.Turn{Calls: []script.Call{like(1)}}, script.Turn{Text: "Ordered."})
				r := message(id(n), "order one more blue mug", history)
				if id(n) == 0 {
					r.MessageID = ""
				}
				return w.send(r)
			}
			one := asks(1, nil)
			asks(2, nil)
			asks(3, one.History)
			if len(w.did) != 3 {
				t.Errorf("effects %v", w.did)
			}
		})
	}
}

// A rejection applies only to the message that requested the effect.
func TestRepeatAfterRejection(t *testing.T) {
	w := newEnv(t)
	var runs []string
	for n, d := range []run.Decision{run.Reject, run.ApproveOnce} {
		w.model.Restart(script.Turn{Calls: []script.Call{rate(5)}})
		r := w.send(message(n, "rate it", nil))
		if len(r.Calls) != 1 || r.Calls[0].Approval == nil {
			t.Fatalf("try %d is not asked about: %+v", n, r)
		}
		w.decide(r.Calls[0].Approval, d)
		runs = append(runs, r.Calls[0].RunID)
	}
	if len(w.did) != 1 || runs[0] == runs[1] {
		t.Errorf("effects %v, runs %v", w.did, runs)
	}
}

// A request that is repeated because its answer was lost has no second effect and requests no second approval, even if
// the model phrases the calls differently. Additional calls are new.
func TestRetryOfRequest(t *testing.T) {
	first := []script.Call{like(1), rate(2)}
	for name, tt := range map[string]struct {
		again   []script.Call
		effects int
		asked   int    // approvals
		told    string // what the model gets
	}{
		"the same":                {first, 1, 1, `"ok":true`},
		"in another order":        {[]script.Call{rate(2), like(1)}, 1, 1, `"ok":true`},
		"in other words":          {[]script.Call{like(4), rate(5)}, 1, 1, `"executedArgs":{"stars":1}`},
		"with a page's call":      {[]script.Call{call("fill-search", `{}`), like(1), rate(2)}, 1, 1, `"ok":true`},
		"with more":               {[]script.Call{like(3), like(1), rate(2)}, 2, 1, `"ok":true`},
		"with more of one kind":   {[]script.Call{like(3), like(4), rate(2)}, 2, 1, `"executedArgs":{"stars":1}`},
		"one after the other":     {[]script.Call{rate(2)}, 1, 1, ""},
		"with less, and then all": {[]script.Call{like(1)}, 1, 1, `"ok":true`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, script.Turn{Calls: first})
			one := w.send(message(1, "like and rate it", nil))
			w.model.Restart(script.Turn{Calls: tt.again}, script.Turn{Calls: []script.Call{rate(3)}})
			two := w.send(message(1, "like and rate it", nil))
			w.model.Restart(script.Turn{Text: "So be it."})
			ap := one.Calls[0].Approval
			pending, _, err := (&records.Records{Store: w.core.Store, Now: w.core.Now}).Pending(t.Context(), alice, "",
				10)
			if err != nil || len(pending) != tt.asked || len(w.did) != tt.effects {
				t.Fatalf("%v, %d approvals, effects %v", err, len(pending), w.did)
			}
			found := false
			var done []chat.Result
			for _, c := range two.Calls {
				found = found || c.Approval != nil && c.Approval.ApprovalID == ap.ApprovalID &&
					string(c.Args) == `{"stars":2}`
				if c.Category == chat.PageAutomation {
					done = append(done, chat.Result{CallID: c.ID, Result: "{}"})
				}
			}
			if !found {
				t.Fatalf("the card of the first try is not shown: %+v", two.Calls)
			}
			w.decide(ap, run.ApproveOnce)
			if w.answer(two.History, done...); len(w.did) != tt.effects+1 {
				t.Errorf("effects %v", w.did)
			}
			if said := string(w.model.Requests()[0].Contents[2]); !strings.Contains(said, tt.told) {
				t.Errorf("the model was told %s", said)
			}
		})
	}
}

// The same applies to the calls after the page's results, even if the page answers differently the second time.
func TestRetryOfResults(t *testing.T) {
	w := newEnv(t, script.Turn{Calls: []script.Call{like(1), call("fill-search", `{}`)}})
	r := w.send(message(1, "like it twice", nil))
	for _, result := range []string{`{"ok":true}`, `{"ok":true}`, `"the page was loaded anew"`} {
		w.model.Restart(script.Turn{Calls: []script.Call{like(1)}}, script.Turn{Text: "Twice."})
		q := results(r.History, chat.Result{CallID: r.Calls[0].ID, Result: result})
		q.MessageID = message(1, "", nil).MessageID
		if got := w.reply(w.chat.Answer(t.Context(), q, nil)); got.Message != "Twice." || len(w.did) != 2 {
			t.Fatalf("%+v, effects %v", got, w.did)
		}
	}
	q := results(r.History, chat.Result{CallID: r.Calls[0].ID, Result: "{}"})
	q.MessageID = message(2, "", nil).MessageID
	_, err := w.chat.Answer(t.Context(), q, nil)
	refused(t, err, fault.Validation, "messageId")
}

// Two tabs that continue from one message, because one tab was duplicated, are two attempts of one request.
func TestRetryFromTwoTabs(t *testing.T) {
	w := newEnv(t, script.Turn{Calls: []script.Call{call("fill-search", `{}`)}})
	r := w.send(message(1, "find and rate it", nil))
	var asked []chat.Pending
	for range 2 {
		w.model.Restart(script.Turn{Calls: []script.Call{rate(5)}})
		asked = append(asked, w.answer(r.History, chat.Result{CallID: r.Calls[0].ID, Result: "{}"}).Calls...)
	}
	if len(asked) != 2 || asked[0].Approval.ApprovalID != asked[1].Approval.ApprovalID {
		t.Errorf("%+v", asked)
	}
}

// Each message needs its own ID.
func TestIDsOfMessages(t *testing.T) {
	w := newEnv(t, script.Turn{Text: "Hello!"})
	r := w.send(message(1, "hi", nil))
	_, err := w.chat.Send(t.Context(), message(1, "and now?", r.History), nil)
	refused(t, err, fault.Validation, "messageId")
	for _, id := range []string{"1", strings.Repeat("x", 65), "a message of mine", "message/0000000000000001"} {
		q := page("hi", nil)
		q.MessageID = id
		_, err := w.chat.Send(t.Context(), q, nil)
		refused(t, err, fault.Validation, "messageId")
	}
}

// The actions of one conversation share one thread of the user. A deleted thread is created again, without the actions
// that waited in it.
func TestThreadOfConversation(t *testing.T) {
	w := newEnv(t)
	rec := &records.Records{Store: w.core.Store, Now: w.core.Now}
	threads := func(want ...string) {
		t.Helper()
		got, _, err := rec.Threads(t.Context(), alice, "", 10)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, threads %+v", err, got)
		}
		for i := range want {
			if got[i].Title != want[i] {
				t.Errorf("a thread is called %q", got[i].Title)
			}
		}
	}
	said := func(history []json.RawMessage, calls ...script.Call) *chat.Reply {
		t.Helper()
		w.model.Restart(script.Turn{Calls: calls}, script.Turn{Text: "Liked."})
		q := page("like it", history)
		q.Origin = "https://shop.example.com"
		return w.reply(w.chat.Send(t.Context(), q, nil))
	}
	r := said(nil, like(1), like(2))
	r = said(r.History, like(3))
	threads("The assistant on https://shop.example.com")
	got, _, err := rec.Threads(t.Context(), alice, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rec.DeleteThread(t.Context(), alice, got[0].ThreadID); err != nil {
		t.Fatal(err)
	}
	threads()
	r = said(r.History, like(4))
	threads("The assistant on https://shop.example.com")
	if r = said(r.History, rate(5)); len(w.did) != 4 || len(r.Calls) != 1 {
		t.Fatalf("%v %+v", w.did, r)
	}
	said(nil, like(5))
	threads("The assistant on https://shop.example.com", "The assistant on https://shop.example.com")
}

// A request is repeated after its answer was lost and its thread was deleted. It has no effect.
func TestRetryAfterDeletion(t *testing.T) {
	w := newEnv(t, script.Turn{Calls: []script.Call{like(1)}}, script.Turn{Text: "Liked."})
	w.send(message(1, "like it", nil))
	rec := &records.Records{Store: w.core.Store, Now: w.core.Now}
	threads, _, err := rec.Threads(t.Context(), alice, "", 10)
	if err == nil {
		_, err = rec.DeleteThread(t.Context(), alice, threads[0].ThreadID)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.model.Restart(script.Turn{Calls: []script.Call{like(1)}}, script.Turn{Text: "Liked."})
	w.send(message(1, "like it", nil))
	told := string(w.model.Requests()[1].Contents[2])
	if len(w.did) != 1 || !strings.Contains(told, "was deleted. The action is not repeated.") ||
		strings.Contains(told, "Idempotency-Key") {
		t.Errorf("effects %v, the model was told %s", w.did, told)
	}
}

// The model gets the outcome of a run that was left behind and decided later, with the user's next message: once, from
// the recorded events, and in the user's role.
func TestOutcomeOfAbandonedRun(t *testing.T) {
	for name, tt := range map[string]struct {
		happens func(w *env, ap *run.ApprovalView)
		told    string
	}{
		"approved": {func(w *env, ap *run.ApprovalView) { w.decide(ap, run.ApproveOnce) },
			`[{"tool":"action_submitRating","args":{"stars":5},"output":{"ok":true}}]`},
		"rejected": {func(w *env, ap *run.ApprovalView) { w.decide(ap, run.Reject) },
			`"error":"The user rejected this; it was not done."`},
		"expired": {func(w *env, ap *run.ApprovalView) { w.expire() },
			`"error":"The approval expired, so this was not done."`},
		"still waiting": {func(*env, *run.ApprovalView) {},
			`these proposals wait for the user's decision: [{"number":1,"tool":"action_submitRating","title":"Rate 5"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, script.Turn{Calls: []script.Call{rate(5)}}, script.Turn{Text: "All right."},
				script.Turn{Text: "I see."}, script.Turn{Text: "Yes."})
			r := w.say("rate it", nil)
			ap := r.Calls[0].Approval
			r = w.say("never mind", r.History)
			tt.happens(w, ap)
			r = w.say("what now?", r.History)
			r = w.say("and now?", r.History)
			asked := w.model.Requests()
			told := string(asked[2].Contents[len(asked[2].Contents)-1])
			if !strings.Contains(told, "from the record and not from the user") ||
				!strings.Contains(strings.ReplaceAll(told, `\"`, `"`), tt.told) {
				t.Errorf("the model was told %s", told)
			}
			if !strings.HasPrefix(told, `{"role":"user",`) || !strings.HasSuffix(told, `{"text":"what now?"}]}`) {
				t.Errorf("the user's words are not the last of %s", told)
			}
			waits := name == "still waiting"
			if last := string(asked[3].Contents[len(asked[3].Contents)-1]); !waits &&
				(!strings.HasSuffix(last, `{"text":"and now?"}]}`) || strings.Contains(last, "from the record")) {
				t.Errorf("it was told again: %s", last)
			}
			if waits {
				w.decide(ap, run.ApproveOnce)
				w.model.Restart(script.Turn{Text: "Done."})
				if w.say("done?", r.History); !strings.Contains(
					string(w.model.Requests()[0].Contents[len(w.model.Requests()[0].Contents)-1]), "the record") {
					t.Error("what was decided still later was not told")
				}
			}
		})
	}
}
