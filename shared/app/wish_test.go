package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// said sends a page's first message in a new conversation, with an ID if it has one.
func said(id, words string) string {
	b, _ := json.Marshal(map[string]any{"message": words, "messageId": id})
	return string(b)
}

// threads returns the titles of the user's conversations.
func (w *proved) threads() (list []struct{ ThreadID, Title string }) {
	w.t.Helper()
	var page struct {
		Threads []struct{ ThreadID, Title string }
	}
	if err := json.Unmarshal(w.call("GET", "/api/agent/threads", "").Body, &page); err != nil {
		w.t.Fatal(err)
	}
	return page.Threads
}

// The same words in a new conversation have a new effect. The same request does not.
func TestWishInNewConversation(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, settings...)
		w.SetModel(testkit.Wants("action_cart_note", json.RawMessage(`{"id":"mug"}`)))
		const words = "order one more blue mug"
		for n, id := range []string{"", "", "0d1f6c3e-2f55-4a0c-9d3a-0a6f0b8f9d11",
			"7b0a4a52-97d1-4c61-8a57-1b6f0f3a1c22", "7b0a4a52-97d1-4c61-8a57-1b6f0f3a1c22"} {
			a := w.chat("/api/agent/chat", said(id, words))
			if want := min(n+1, 4); a.HTTP != http.StatusOK || len(e.requests()) != want {
				t.Fatalf("message %d: %d %s, %d orders of %d", n, a.HTTP, a.Body, len(e.requests()), want)
			}
		}
		if n := len(w.threads()); n != 4 {
			t.Errorf("%d threads of 4 conversations", n)
		}
		a := w.chat("/api/agent/chat", said("1", words))
		if a.HTTP != http.StatusBadRequest || a.Error.Field != "messageId" {
			t.Errorf("%d %s; want a.HTTP %v, a.Error.Field “messageId”", a.HTTP, a.Body, http.StatusBadRequest)
		}
	})
}

// A message that arrives several times at once, as from two tabs and an impatient retry, has one effect.
func TestWishRace(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, settings...)
		w.SetModel(oncePerMessage("action_cart_note", json.RawMessage(`{"id":"mug"}`)))
		for n, id := range []string{"0d1f6c3e-2f55-4a0c-9d3a-0a6f0b8f9d11", "7b0a4a52-97d1-4c61-8a57-1b6f0f3a1c22"} {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					// A try can be refused for now while another one is in progress. It cannot order twice.
					if a, err := w.Call(t.Context(), "ana", "POST", chatPath,
						said(id, "order a blue mug")); err != nil || a.HTTP >= http.StatusInternalServerError &&
						a.HTTP != http.StatusServiceUnavailable {
						t.Errorf("%v %d %s", err, a.HTTP, a.Body)
					}
				})
			}
			all.Wait()
			if got := w.chat(chatPath, said(id, "order a blue mug")); got.Type != "response" ||
				len(e.requests()) != n+1 {
				t.Fatalf("%d %s, %d orders of %d", got.HTTP, got.Body, len(e.requests()), n+1)
			}
		}
		if n := len(w.threads()); n != 2 {
			t.Errorf("%d threads of 2 conversations", n)
		}
	})
}

// A rejection counts only for the approval that it answers, and not for a later one. Two conversations with the same
// words have two approvals.
func TestWishAfterRejection(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, settings...)
		w.SetModel(testkit.Wants("action_cart_add", json.RawMessage(`{"id":"mug"}`)))
		var calls []testkit.WaitingCall
		for range 3 {
			got := w.chat("/api/agent/chat", said("", "order one more blue mug"))
			if len(got.Calls) != 1 || got.Calls[0].Approval == nil {
				t.Fatalf("%d %s; want len(got.Calls) 1, got.Calls[0].Approval set", got.HTTP, got.Body)
			}
			calls = append(calls, got.Calls[0])
			if len(calls) == 1 {
				if got, err := w.Resolve(t.Context(), "ana", *calls[0].Approval, "reject"); err != nil ||
					got.HTTP != http.StatusOK {
					t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
				}
			}
		}
		if calls[1].RunID == calls[2].RunID {
			t.Error("two conversations share one approval")
		}
		for _, c := range calls[1:] {
			w.approve(testkit.Answer{RunID: c.RunID, Approvals: []testkit.Approval{*c.Approval}})
		}
		if n := len(e.requests()); n != 2 {
			t.Errorf("%d orders of two that were approved", n)
		}
	})
}

// The actions of one chat are one conversation of its user. If the user deletes it, the page continues, and later
// messages have effects.
func TestWishAfterThreadDeleted(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, settings...)
		w.SetModel(oncePerMessage("action_cart_note", json.RawMessage(`{"id":"mug"}`)))
		got := w.chat("/api/agent/chat", said("", "order a blue mug"))
		for n := 2; n <= 3; n++ {
			if n == 3 {
				if a := w.call("DELETE", "/api/agent/threads/"+w.threads()[0].ThreadID, ""); a.HTTP/100 != 2 {
					t.Fatalf("%d %s; want a.HTTP/100 2", a.HTTP, a.Body)
				}
			}
			if got = w.chat("/api/agent/chat", saidNext(got, "order one more")); got.HTTP != http.StatusOK ||
				len(e.requests()) != n {
				t.Fatalf("%d %s, %d orders", got.HTTP, got.Body, len(e.requests()))
			}
			if threads := w.threads(); len(threads) != 1 {
				t.Fatalf("%d threads of one conversation", len(threads))
			}
		}
	})
}

// saidNext sends the page's next message in a conversation.
func saidNext(t testkit.Answer, words string) string {
	return `{"message":"` + words + `","history":` + string(t.History) + `}`
}

// TestWishLeftAndDecidedLater has a user write another message instead of deciding, and decide later in the inbox. With
// the next message the model gets the recorded outcome, once.
func TestWishLeftAndDecidedLater(t *testing.T) {
	const (
		record  = "from the record and not from the user"
		waiting = record + `: these proposals wait for the user's decision: [{"number":1,"tool":"action_cart_add"`
	)
	onEachStore(t, func(t *testing.T, settings ...string) {
		for decision, c := range map[string]struct {
			orders int
			told   string
		}{
			"approve_once": {1, `"output":{"items":1}`},
			"reject":       {0, `"error":"The user rejected this; it was not done."`},
		} {
			e := newEndpoint(t)
			w := withActions(t, e, settings...)
			w.SetModel(testkit.Wants("action_cart_add", json.RawMessage(`{"id":"mug"}`)))
			got := w.chat(chatPath, said("", "order a blue mug"))
			if len(got.Calls) != 1 || got.Calls[0].Approval == nil {
				t.Fatalf("%d %s; want len(got.Calls) 1, got.Calls[0].Approval set", got.HTTP, got.Body)
			}
			left := got.Calls[0]
			told := func(words string) (texts []string) {
				t.Helper()
				if got = w.chat(chatPath, saidNext(got, words)); got.Message != "All right." {
					t.Fatalf("%s: %d %s; want got.Message “All right.”", decision, got.HTTP, got.Body)
				}
				asked := w.Gemini.Requests()
				contents := asked[len(asked)-1].Contents
				for _, p := range contents[len(contents)-1].Parts {
					texts = append(texts, *p.Text)
				}
				return texts
			}
			w.SetModel(testkit.Says("All right."))
			told("never mind")
			if texts := told("still there?"); len(texts) != 2 || !strings.Contains(texts[0], waiting) ||
				texts[1] != "still there?" {
				t.Errorf("before the decision the model was told %q", texts)
			}
			w.decideLater(left, decision)
			if len(e.requests()) != c.orders {
				t.Errorf("%s: %d orders", decision, len(e.requests()))
			}
			if texts := told("what now?"); len(texts) != 2 || !strings.Contains(texts[0], record) ||
				!strings.Contains(texts[0], c.told) || texts[1] != "what now?" {
				t.Errorf("%s: the model was told %q", decision, texts)
			}
			if texts := told("and now?"); !slices.Equal(texts, []string{"and now?"}) {
				t.Errorf("%s: it was told again: %q", decision, texts)
			}
		}
	})
}

// decideLater decides an approval in the inbox, and advances its run.
func (w *proved) decideLater(left testkit.WaitingCall, decision string) {
	w.t.Helper()
	pending := w.call("GET", "/api/agent/approvals/pending", "")
	if len(pending.Approvals) != 1 || pending.Approvals[0].ApprovalID != left.Approval.ApprovalID {
		w.t.Fatalf("in the inbox: %s", pending.Body)
	}
	if got, err := w.Resolve(w.t.Context(), "ana", pending.Approvals[0], decision); err != nil ||
		got.HTTP != http.StatusOK {
		w.t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
	}
	w.deliver()
}
