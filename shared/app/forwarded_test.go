package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/forwards"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// forwardedAnswers returns an answer to a card as the clients of each chat protocol send it.
var forwardedAnswers = map[string]func(a testkit.Approval, yes bool) string{
	"ui": func(a testkit.Approval, yes bool) string {
		return fmt.Sprintf(`{"id":"c","messages":[{"id":"m","role":"assistant","parts":[{"type":"dynamic-tool",`+
			`"toolName":"mail","toolCallId":"c","input":{},"state":"approval-responded",`+
			`"approval":{"id":"%s~%s","approved":%t}}]}]}`, a.ApprovalID, a.ArgsHash, yes)
	},
	"agui": func(a testkit.Approval, yes bool) string {
		return fmt.Sprintf(`{"threadId":"c","runId":"r","messages":[],"tools":[],"context":[],"state":{},"resume":[`+
			`{"interruptId":%q,"status":"resolved","payload":{"decision":%q,"argsHash":%q}}]}`, a.ApprovalID,
			map[bool]string{true: "approve_once", false: "reject"}[yes], a.ArgsHash)
	},
}

// TestForwardedDecisions decides through the chat protocols in a process that cannot sign and forwards decisions to
// another one. A yes executes, a no does not, and a refusal by the other process reaches the client.
func TestForwardedDecisions(t *testing.T) {
	onSigningStores(t, func(t *testing.T, w *signing) {
		if w.options.App == nil {
			return // the embedded store's only process signs
		}
		w.with("DECISIONS=require")
		front := forwarding(t, w)
		for protocol, said := range forwardedAnswers {
			answers := func(a testkit.Approval, yes bool) testkit.Answer {
				return w.while(func() (testkit.Answer, error) {
					return front.Call(t.Context(), protocol, http.MethodPost, "/api/agent/"+protocol, said(a, yes))
				})
			}
			asked := w.asks(protocol)
			if a := answers(asked.Approvals[0], true); a.HTTP != http.StatusOK {
				t.Fatalf("%s: a yes gets %d %s; want 200", protocol, a.HTTP, a.Body)
			}
			if became := w.settled(protocol, asked); became != "done" {
				t.Errorf("%s: after a forwarded yes the call is %s; want done", protocol, became)
			}
			if a := answers(asked.Approvals[0], false); !strings.Contains(string(a.Body), "already") {
				t.Errorf("%s: a no after the yes gets %d %s; want already_resolved", protocol, a.HTTP, a.Body)
			}
			asked = w.asks(protocol)
			answers(asked.Approvals[0], false)
			if became := w.settled(protocol, asked); became != "done" { // that of before: no second e-mail
				t.Errorf("%s: after a forwarded no the user has %s; want one e-mail", protocol, became)
			}
		}
	})
}

// while makes the call, and continues the runs that it waits for.
func (w *signing) while(call func() (testkit.Answer, error)) (got testkit.Answer) {
	w.t.Helper()
	answered := make(chan error, 1)
	go func() {
		var err error
		got, err = call()
		answered <- err
	}()
	await.That(w.t, "the answer of the call", func() bool {
		w.deliver()
		select {
		case err := <-answered:
			if err != nil {
				w.t.Fatal(err)
			}
			return true
		default:
			return false
		}
	})
	return got
}

// TestForwardedWithoutAnswer has a broken process record decisions. The client learns that it can try again, and the
// user's token goes to no other address.
func TestForwardedWithoutAnswer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusBadGateway) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) },
	} {
		var tokens []string
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tokens = append(tokens, r.URL.Path)
			answer(w, r)
		}))
		w := deployWith(t, testkit.Options{Dir: t.TempDir(), App: []app.Option{app.With(forwards.Part)},
			Settings: []string{"DECISIONS_URL=" + other.URL}})
		w.mail()
		asked, err := w.Ask(t.Context(), "ana", "mail bob")
		if err != nil || len(asked.Approvals) != 1 {
			t.Fatalf("%v %s; want one card", err, asked.Body)
		}
		got, err := w.Call(t.Context(), "ana", http.MethodPost, "/api/agent/ui",
			forwardedAnswers["ui"](asked.Approvals[0], true))
		if err != nil || got.HTTP != http.StatusServiceUnavailable {
			t.Errorf("%s: %v %d %s; want 503", name, err, got.HTTP, got.Body)
		}
		if !slices.Equal(tokens, []string{"/api/agent/approvals/resolve"}) {
			t.Errorf("%s: the user's token went to %q; want only the route of decisions", name, tokens)
		}
		other.Close()
	}
}

// forwarding starts a second process on the same store. It has no key, and forwards decisions to the first one.
func forwarding(t *testing.T, w *signing) *testkit.Deployment {
	t.Helper()
	o := w.options
	o.App = []app.Option{app.Replace(app.Part{Name: "decisions"}), app.With(forwards.Part)}
	o.Settings = append(o.Settings[:len(o.Settings):len(o.Settings)], "DECISIONS=require", "DECISIONS_URL="+w.Base)
	front := &testkit.Deployment{Cloud: w.Cloud, Logs: &testkit.Log{}}
	if err := front.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := front.Stop(); err != nil {
			t.Error(err)
		}
	})
	return front
}
