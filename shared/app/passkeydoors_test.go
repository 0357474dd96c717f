package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// TestPasskeyForEdits approves an edited e-mail. Other edits have another challenge.
func TestPasskeyForEdits(t *testing.T) {
	w := strong(t, mailRule)
	key := w.enrol("ana")
	r := w.asks("ana")
	c, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	decide := func(words string, answer json.RawMessage) testkit.Answer {
		t.Helper()
		body := map[string]any{"approvalId": r.Approvals[0].ApprovalID, "decision": "approve_with_edits",
			"argsHash": r.Approvals[0].ArgsHash, "editedArgs": testkit.Mail("bob@example.com", "s", words)}
		if answer != nil {
			body["passkey"] = answer
		}
		a, err := c(t.Context(), http.MethodPost, "/api/agent/approvals/resolve", body, "Origin", testkit.Console)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	challenge, err := testkit.AskedPasskey(decide("edited", nil))
	if err != nil {
		t.Fatal(err)
	}
	if a := decide("other", key.Get(challenge)); a.Error.Code != "passkey_refused" {
		t.Errorf("other edits: %d %s, want passkey_refused", a.HTTP, a.Body)
	}
	if a := decide("edited", key.Get(challenge)); a.HTTP != http.StatusOK {
		t.Fatalf("the same edits: %d %s", a.HTTP, a.Body)
	}
	if got := w.settled("ana", r); !strings.HasPrefix(got, "done ") { // the audit log has the refusal
		t.Errorf("%s, want done", got)
	}
}

// TestPasskeyForGrants confirms a plan that permits a later call. Without the passkey's confirmation in the store, the
// call asks.
func TestPasskeyForGrants(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(*run.Event)
		want  int // issues that were opened
	}{
		"nothing changed": {func(*run.Event) {}, 1},
		"the confirmation removed": {func(e *run.Event) {
			if e.Decided != nil {
				e.Decided.Passkey = nil
			}
		}, 0},
	} {
		w := strong(t, "planGrants: true")
		key := w.enrol("ana")
		w.addSite()
		w.SetModel(opensIssues)
		var s planner.Session
		w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues","repoUrl":"%s/acme/web","deadline":%q}`,
			w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
		w.plans(&s, "/"+s.SessionID, "")
		path := "/api/agent/plans/" + s.SessionID + "/execute"
		asked, err := w.Call(t.Context(), "ana", http.MethodPost, path, `{"planHash":"`+s.PlanHash+`"}`, "Origin",
			testkit.Console)
		if err != nil {
			t.Fatal(err)
		}
		challenge, err := testkit.AskedPasskey(asked)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a, err := w.Call(t.Context(), "ana", http.MethodPost, path, `{"planHash":"`+s.PlanHash+`","passkey":`+
			string(key.Get(challenge))+`}`, "Origin", testkit.Console)
		if err != nil || a.HTTP >= 300 {
			t.Fatalf("%s: %v %d %s", name, err, a.HTTP, a.Body)
		}
		w.rewrite(document.RunPath(s.SessionID), c.forge)
		w.deliver()
		w.plans(&s, "/"+s.SessionID, "")
		if n := len(w.GitHub.View()[0].Issues); n != c.want || s.Status != plan.StatusExecuting {
			t.Errorf("%s: %d issues, want %d: %+v", name, n, c.want, s)
		}
	}
}

// TestPasskeyInChats says yes through the protocols of chats, which show no passkey. The message links to the card.
func TestPasskeyInChats(t *testing.T) {
	w := strong(t, mailRule)
	w.enrol("ana")
	for protocol, said := range forwardedAnswers {
		r := w.asks("ana")
		a, err := w.Call(t.Context(), "ana", http.MethodPost, "/api/agent/"+protocol, said(r.Approvals[0], true))
		if err != nil {
			t.Fatal(err)
		}
		link := testkit.Console + "/#/approvals/" + r.Approvals[0].ApprovalID
		if text := string(a.Body); !strings.Contains(text, link) || strings.Contains(text, "challenge") {
			t.Errorf("%s: %d %s, want %s and no challenge", protocol, a.HTTP, text, link)
		}
		if got := w.settled("ana", r); got != "asked" {
			t.Errorf("%s: %s, want asked", protocol, got)
		}
	}
}

// TestPasskeyForOwnActions calls an action with an effect from a page. Where a rule names the call, its user is asked.
func TestPasskeyForOwnActions(t *testing.T) {
	settings, err := testkit.Strong(t.TempDir(), "calls: [{tool: action_cart_add, amount: {at: /count, above: 5}}]")
	if err != nil {
		t.Fatal(err)
	}
	e := newEndpoint(t)
	w := withActions(t, e, append(settings, "ALLOWED_ORIGINS="+testkit.Console)...)
	if a, _ := w.act("cart.add", `{"id":"mug","count":5}`); a.HTTP != http.StatusOK || len(e.requests()) != 1 {
		t.Errorf("five: %d %s, %d requests", a.HTTP, a.Body, len(e.requests()))
	}
	a, _ := w.act("cart.add", `{"id":"mug","count":6}`)
	if len(e.requests()) != 1 {
		t.Errorf("six: %d %s, %d requests", a.HTTP, a.Body, len(e.requests()))
	}
	pending := w.call(http.MethodGet, "/api/agent/approvals/pending", "")
	if len(pending.Approvals) != 1 {
		t.Fatalf("six: %s; then %s", a.Body, pending.Body)
	}
	key := testkit.NewKey()
	if err := w.Enrol(t.Context(), "ana", key); err != nil {
		t.Fatal(err)
	}
	if a, err := w.Confirm(t.Context(), "ana", pending.Approvals[0], "approve_once", key); err != nil ||
		a.HTTP != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.HTTP, a.Body)
	}
	w.deliver()
	if n := len(e.requests()); n != 2 {
		t.Errorf("after the passkey: %d requests, want 2", n)
	}
}
