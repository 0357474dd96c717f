package app_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// Two Google accounts of ana.
const home, work = "ana-home", "ana-work"

// linked is a deployment in which ana has linked her home account.
type linked struct{ *proved }

// onBothStores runs a test over HTTP on the embedded store and on Firestore's emulator.
func onBothStores(t *testing.T, test func(*testing.T, linked)) {
	t.Run("embedded", func(t *testing.T) { test(t, newLinked(t)) })
	t.Run("firestore", func(t *testing.T) {
		host := emulators.Firestore(t)
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		test(t, newLinked(t, "STORE=firestore", "QUEUE=embedded",
			"GOOGLE_CLOUD_PROJECT=demo-"+strings.ToLower(rand.Text()[:20]), "FIRESTORE_EMULATOR_HOST="+host))
	})
}

func newLinked(t *testing.T, settings ...string) linked {
	t.Helper()
	// the tests link accounts themselves
	l := linked{deployWith(t, testkit.Options{Settings: settings, Unlinked: true})}
	// an emulator that has just started may be slow
	for range 5 {
		if a := l.call("GET", "/api/agent/connections", ""); a.HTTP == http.StatusOK {
			break
		}
	}
	l.link(home)
	return l
}

func (w linked) link(account string) {
	w.t.Helper()
	if err := w.Link(w.t.Context(), "ana", account); err != nil {
		w.t.Fatal(err)
	}
}

// card returns the only waiting approval and the account that it shows.
type card struct {
	testkit.Approval
	Reason  string
	from    string
	preview tool.Preview
}

func (w linked) card() card {
	w.t.Helper()
	var pending struct {
		Approvals []struct {
			testkit.Approval
			Reason  string
			Preview tool.Preview
		}
	}
	if a := w.call("GET", "/api/agent/approvals/pending", ""); json.Unmarshal(a.Body, &pending) != nil ||
		len(pending.Approvals) != 1 {
		w.t.Fatalf("%d %s; want no error from json.Unmarshal, len(pending.Approvals) 1", a.HTTP, a.Body)
	}
	ap := pending.Approvals[0]
	c := card{Approval: ap.Approval, Reason: ap.Reason, preview: ap.Preview}
	for _, f := range ap.Preview.Fields {
		if f.Label == "From" {
			c.from = f.Value
		}
	}
	return c
}

func (w linked) decide(c card, decision string) testkit.Answer {
	w.t.Helper()
	a, err := w.Resolve(w.t.Context(), "ana", c.Approval, decision)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w linked) run(id string) testkit.Answer {
	w.t.Helper()
	return w.call("GET", "/api/agent/runs/"+id, "")
}

// carriedOut returns the accounts in which something was done, one entry for each e-mail and event.
func (w linked) carriedOut() string {
	var in []string
	for _, e := range w.Effects() {
		in = append(in, e.UID)
	}
	return strings.Join(in, " ")
}

func (w linked) wants(what string, a testkit.Answer, status int, code string) {
	w.t.Helper()
	if a.HTTP != status || a.Error.Code != code {
		w.t.Errorf("%s: %d %s, want %d %s", what, a.HTTP, a.Body, status, code)
	}
}

func TestCardAccount(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		for _, ask := range []func(){w.mail, w.event} {
			ask()
			w.ask()
			old := w.card()
			if old.from != testkit.Address(home) {
				t.Fatalf("the card is from %q", old.from)
			}
			w.link(work)
			w.wants("a yes for another account", w.decide(old, "approve_once"), http.StatusConflict, "stale_view")
			fresh := w.card()
			if fresh.from != testkit.Address(work) || fresh.ArgsHash == old.ArgsHash ||
				fresh.ApprovalID == old.ApprovalID {
				t.Errorf("asked afresh from %q, hashed alike: %v", fresh.from, fresh.ArgsHash == old.ArgsHash)
			}
			echo := fresh
			echo.ArgsHash = old.ArgsHash
			w.wants("the echo of the other account's hash", w.decide(echo, "approve_once"), http.StatusConflict,
				"stale_view")
			w.wants("a yes for this account", w.decide(fresh, "approve_once"), http.StatusOK, "")
			w.deliver()
			w.link(home)
		}
		if got := w.carriedOut(); got != work+" "+work {
			t.Errorf("done in %q", got)
		}
	})
}

func TestRelinkAfterApproval(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		for _, ask := range []func(){w.mail, w.event} {
			ask()
			r := w.ask()
			w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
			w.link(work)
			w.deliver()
			if a := w.run(r.RunID); len(a.Actions) != 1 || a.Actions[0].Status != "failed" ||
				a.Actions[0].ErrorReason != "stale_view" {
				t.Errorf("%s; want len(a.Actions) 1, a.Actions[0].Status “failed”, "+
					"a.Actions[0].ErrorReason “stale_view”",
					a.Body)
			}
			w.link(home)
		}
		if got := w.carriedOut(); got != "" {
			t.Errorf("done in %q", got)
		}
	})
}

func TestRelinkDuringReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		op   string
		ask  func(linked)
		kind fakegoogle.Kind
		done string
	}{
		"the event was made":      {"calendar.events.insert", linked.event, fakegoogle.ResetAfter, home},
		"the event was not made":  {"calendar.events.insert", linked.event, fakegoogle.ResetBefore, ""},
		"the e-mail was sent":     {"gmail.drafts.send", linked.mail, fakegoogle.ResetAfter, home},
		"the e-mail was not sent": {"gmail.drafts.send", linked.mail, fakegoogle.ResetBefore, ""},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, w linked) {
				c.ask(w)
				r := w.ask()
				w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
				w.SetFault(func(op string) fakegoogle.Fault {
					if op != c.op {
						return fakegoogle.Fault{}
					}
					w.SetFault(nil)
					w.link(work)
					return fakegoogle.Fault{Kind: c.kind}
				})
				w.deliver()
				if a := w.run(r.RunID); len(a.Actions) != 1 || a.Actions[0].ExecutionStatus != "unknown" {
					t.Errorf("%s; want len(a.Actions) 1, a.Actions[0].ExecutionStatus “unknown”", a.Body)
				}
				if got := w.carriedOut(); got != c.done {
					t.Errorf("done in %q", got)
				}
				review := w.card()
				if review.Kind != "review" || review.from != testkit.Address(home) {
					t.Errorf("the review is a %s from %q", review.Kind, review.from)
				}
				w.wants("starting anew", w.decide(review, "start_new"), http.StatusOK, "")
				if again := w.card(); again.from != testkit.Address(work) || again.Kind != "approval" {
					t.Errorf("asked for again as a %s from %q", again.Kind, again.from)
				}
			})
		})
	}
}

// TestRelinkOfSameAccount checks that an added scope does not invalidate waiting approvals.
func TestRelinkOfSameAccount(t *testing.T) {
	w := newLinked(t)
	w.mail()
	w.ask()
	w.link(home)
	w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
	w.link(home)
	w.deliver()
	if got := w.carriedOut(); got != home {
		t.Errorf("done in %q", got)
	}
	w.ask()
	if a := w.call("DELETE", "/api/agent/connections/google", ""); a.HTTP != http.StatusOK {
		t.Fatalf("%s; want a.HTTP %v", a.Body, http.StatusOK)
	}
	c := w.card()
	w.wants("a yes without an account", w.decide(c, "approve_once"), http.StatusForbidden, "reauth_required")
	w.link(home)
	w.wants("a yes for a link that was given up", w.decide(c, "approve_once"), http.StatusConflict, "stale_view")
}

// TestApprovalOfEarlierRelease checks that an approval without an account is requested again, with one.
func TestApprovalOfEarlierRelease(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		w.mail()
		r := w.ask()
		old := w.card()
		hash := run.ArgsHash("ana", w.App.API.Loop.Tools[old.Tool].Spec, tool.Place{}, old.Args)
		for _, path := range []string{document.RunPath(r.RunID), document.ApprovalPath(old.ApprovalID)} {
			docs, err := w.App.Store.Get(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			var doc any
			if err := json.Unmarshal(docs[0].Data, &doc); err != nil {
				t.Fatal(err)
			}
			forgetPlace(doc)
			data, err := strictjson.Marshal(doc)
			if err != nil || strings.Contains(string(data), home) && path != document.RunPath(r.RunID) {
				t.Fatalf("%v %s", err, data)
			}
			data = []byte(strings.ReplaceAll(string(data), old.ArgsHash, hash))
			if _, err := w.App.Store.Commit(t.Context(),
				store.Update(path, docs[0].Version, docs[0].Fields, data)); err != nil {
				t.Fatal(err)
			}
		}
		old.ArgsHash = hash
		w.wants("a yes to what shows no account", w.decide(old, "approve_once"), http.StatusConflict, "stale_view")
		fresh := w.card()
		if fresh.from != testkit.Address(home) || fresh.ArgsHash == hash {
			t.Errorf("asked afresh from %q", fresh.from)
		}
		w.wants("the yes", w.decide(fresh, "approve_once"), http.StatusOK, "")
		w.deliver()
		if got := w.carriedOut(); got != home {
			t.Errorf("done in %q", got)
		}
	})
}

// forgetPlace removes from a document what the previous release did not write.
func forgetPlace(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "place")
		if fields, ok := v["fields"].([]any); ok {
			v["fields"] = fields[1:] // From
		}
		for _, inner := range v {
			forgetPlace(inner)
		}
	case []any:
		for _, inner := range v {
			forgetPlace(inner)
		}
	}
}

// TestHTMLOfEditedMail checks that an edited e-mail has no HTML version. Most e-mail programs show the HTML, so its
// reader would not see the edit.
func TestHTMLOfEditedMail(t *testing.T) {
	for name, c := range map[string]struct{ change, html string }{
		"the text":     {`"body":"new"`, ""},
		"both":         {`"body":"new","htmlBody":"<p>new"`, "<p>new"},
		"the subject":  {`"subject":"new"`, "<p>old"},
		"without HTML": {`"htmlBody":""`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newLinked(t)
			w.SetModel(testkit.Wants("gmail_send", map[string]any{"to": []string{"bob@example.com"}, "subject": "old",
				"body": "old", "htmlBody": "<p>old"}))
			w.ask()
			card := w.card()
			edited := map[string]any{}
			for _, part := range []string{string(card.Args), "{" + c.change + "}"} {
				if err := json.Unmarshal([]byte(part), &edited); err != nil {
					t.Fatal(err)
				}
			}
			shown := testkit.Approval{ApprovalID: card.ApprovalID, ArgsHash: card.ArgsHash}
			for range 2 { // a repeated decision gets the same answer
				w.wants("the edit", w.edit(shown, edited), http.StatusOK, "")
			}
			w.deliver()
			w.wants("the edit once it is done", w.edit(shown, edited), http.StatusOK, "")
			sent := w.Google.Messages()
			if len(sent) != 1 || sent[0].HTML != c.html || sent[0].Text != edited["body"] ||
				sent[0].Subject != edited["subject"] {
				t.Errorf("sent %+v", sent)
			}
		})
	}
}

// TestAlwaysAllowAddresses checks that the part before the @ is compared exactly (RFC 5321 §2.4) and the domain without
// regard to case, and that the card says so.
func TestAlwaysAllowAddresses(t *testing.T) {
	w := newLinked(t)
	to := func(address string) { w.SetModel(testkit.Wants("gmail_send", testkit.Mail(address, "s", "b"))) }
	to("Bob@Example.COM")
	w.ask()
	first := w.card()
	if said := w.field("Always allow covers"); !strings.Contains(said, "capitals count before the @") {
		t.Errorf("the card says %q", said)
	}
	w.wants("always", w.decide(first, "approve_and_always_allow_recipient"), http.StatusOK, "")
	w.deliver()
	to("Bob@exAMple.com")
	if a := w.ask(); a.Actions[0].Status != "completed" {
		t.Errorf("the same address with another domain's capitals: %s", a.Body)
	}
	to("bob@example.com")
	if a := w.ask(); a.Actions[0].Status != "awaiting_confirmation" {
		t.Errorf("another address: %s", a.Body)
	}
	if reason := w.card().Reason; !strings.Contains(reason, "upper and lower case") {
		t.Errorf("asked because %q", reason)
	}
}

// field returns the value under the label on the only waiting card.
func (w linked) field(label string) string {
	w.t.Helper()
	for _, f := range w.card().preview.Fields {
		if f.Label == label {
			return f.Value
		}
	}
	return ""
}
