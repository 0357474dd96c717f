package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/authenticator"
)

// strong returns a deployment in which the rules say which decisions need a passkey.
func strong(t *testing.T, rules string) *signing {
	t.Helper()
	dir := t.TempDir()
	settings, err := testkit.Strong(dir, rules)
	if err != nil {
		t.Fatal(err)
	}
	o := testkit.Options{Dir: dir, Settings: append(append(settings, testkit.Unlimited...),
		"ALLOWED_ORIGINS="+testkit.Console)}
	return &signing{deployWith(t, o), o, nil, 0}
}

const mailRule = "calls: [{tool: gmail_send}]"

// enrol adds a passkey to those of the user.
func (w *signing) enrol(uid string) *authenticator.Key {
	w.t.Helper()
	key := testkit.NewKey()
	if err := w.Enrol(w.t.Context(), uid, key); err != nil {
		w.t.Fatal(err)
	}
	return key
}

// confirms decides about the only card with the passkey.
func (w *signing) confirms(uid string, r testkit.Answer, decision string, key *authenticator.Key) testkit.Answer {
	w.t.Helper()
	a, err := w.Confirm(w.t.Context(), uid, r.Approvals[0], decision, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// passkeys changes the user's passkeys in the store.
func (w *signing) passkeys(uid string, change func(*passkey.Set)) {
	w.t.Helper()
	path, set := document.PasskeysPath(uid), passkey.Set{}
	docs, err := w.App.Store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := document.Decode(docs[0], &set); docs[0].Exists() && err != nil {
		w.t.Fatal(err)
	}
	change(&set)
	data, err := json.Marshal(set)
	if err != nil {
		w.t.Fatal(err)
	}
	write := store.Update(path, docs[0].Version, docs[0].Fields, data)
	if !docs[0].Exists() {
		write = store.Create(path, nil, data)
	}
	if _, err := w.App.Store.Commit(w.t.Context(), write); err != nil {
		w.t.Fatal(err)
	}
}

// TestPasskeyConfirmsCard approves an e-mail from the console, with a passkey.
func TestPasskeyConfirmsCard(t *testing.T) {
	w := strong(t, mailRule)
	r := w.asks("ana")
	if want := `"passkeyFor":["approve_once","approve_and_always_allow_recipient","approve_with_edits"]`; !strings.Contains(
		string(r.Body), want) {
		t.Errorf("%s lacks %s", r.Body, want)
	}
	c, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(decision string, header ...string) testkit.Answer {
		t.Helper()
		a, err := c.Resolve(t.Context(), r.Approvals[0], decision, header...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	console := []string{"Origin", testkit.Console}
	a := resolve("approve_once", console...)
	if a.HTTP != http.StatusForbidden || a.Error.Code != "passkey_missing" ||
		!strings.Contains(string(a.Body), `"link":"`+testkit.Console+`/#/passkeys"`) {
		t.Fatalf("without a passkey: %d %s", a.HTTP, a.Body)
	}
	key := w.enrol("ana")
	first, second := resolve("approve_once", console...), resolve("approve_once", console...)
	challenge, err := testkit.AskedPasskey(first)
	again, _ := testkit.AskedPasskey(second)
	if err != nil || first.Error.Code != "passkey_required" || challenge != again {
		t.Fatalf("%s, then %s: %v", first.Body, second.Body, err)
	}
	if a := resolve("approve_once"); a.Error.Code != "passkey_required" ||
		strings.Contains(string(a.Body), "challenge") ||
		!strings.Contains(string(a.Body), `"link":"`+testkit.Console+`/#/approvals/`+r.Approvals[0].ApprovalID) {
		t.Errorf("from another page: %s", a.Body)
	}
	other := resolve("approve_and_always_allow_recipient", console...)
	if strings.Contains(string(other.Body), challenge) {
		t.Errorf("another decision has the same challenge: %s", other.Body)
	}
	if a := w.confirms("ana", r, "approve_once", key); a.HTTP != http.StatusOK {
		t.Fatalf("%d %s", a.HTTP, a.Body)
	}
	if got := w.settled("ana", r); got != "done" {
		t.Errorf("%s; want done", got)
	}
	if a := resolve("approve_once", console...); a.HTTP != http.StatusOK {
		t.Errorf("a repeated decision: %d %s", a.HTTP, a.Body)
	}
}

// TestNoNeedsNoPasskey rejects a card for whose approval a passkey is needed, and approves a card of another tool.
func TestNoNeedsNoPasskey(t *testing.T) {
	w := strong(t, mailRule)
	if got := w.decides("ana", w.asks("ana"), "reject"); got != http.StatusOK {
		t.Errorf("a no: %d", got)
	}
	w.event()
	r, err := w.Ask(t.Context(), "ana", "an event")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.decides("ana", r, "approve_once"); got != http.StatusOK {
		t.Errorf("another tool: %d", got)
	}
}

// TestRefusedPasskeys answers the challenge in wrong ways. The card still waits.
func TestRefusedPasskeys(t *testing.T) {
	w := strong(t, mailRule)
	key := w.enrol("ana")
	w.confirms("ana", w.asks("ana"), "approve_once", key)
	other := w.asks("ana")
	r := w.asks("ana")
	c, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	challenge := func(r testkit.Answer) string {
		a, err := c.Resolve(t.Context(), r.Approvals[0], "approve_once", "Origin", testkit.Console)
		if err != nil {
			t.Fatal(err)
		}
		text, err := testkit.AskedPasskey(a)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	mine, others := challenge(r), challenge(other)
	with := func(change func(*authenticator.Key), challenge string) json.RawMessage {
		k := key.Clone()
		change(k)
		return k.Get(challenge)
	}
	for name, answer := range map[string]json.RawMessage{
		"another card":     with(func(*authenticator.Key) {}, others),
		"another origin":   with(func(k *authenticator.Key) { k.Origin = "https://agent.example.org" }, mine),
		"another site":     with(func(k *authenticator.Key) { k.Site = "example.org" }, mine),
		"unverified":       with(func(k *authenticator.Key) { k.Unverified = true }, mine),
		"a cloned counter": with(func(k *authenticator.Key) { k.Frozen = true }, mine),
		"an unknown key":   testkit.NewKey().Get(mine),
	} {
		a, err := c.Passkey(t.Context(), r.Approvals[0], "approve_once", answer)
		if err != nil || a.HTTP != http.StatusForbidden || a.Error.Code != "passkey_refused" {
			t.Errorf("%s: %v %d %s; want passkey_refused", name, err, a.HTTP, a.Body)
		}
	}
	if log := w.Logs.String(); !strings.Contains(log, "its counter is 1 after 1, as of a copy of the passkey") {
		t.Errorf("the log does not name the clone:\n%s", log)
	}
	if a, err := c.Passkey(t.Context(), r.Approvals[0], "approve_once", []byte(`{"id":"AAAA"}`)); err != nil ||
		a.HTTP != http.StatusBadRequest {
		t.Errorf("no assertion: %v %d %s", err, a.HTTP, a.Body)
	}
	if a, err := c.Passkey(t.Context(), r.Approvals[0], "approve_once", key.Get(mine)); err != nil ||
		a.HTTP != http.StatusOK {
		t.Errorf("the right answer: %v %d %s", err, a.HTTP, a.Body)
	}
}

// TestPasskeyAtExecutor changes the documents after a genuine decision with a passkey, or the operator's rules. The
// executor itself refuses or asks.
func TestPasskeyAtExecutor(t *testing.T) {
	w := strong(t, mailRule)
	for name, c := range map[string]struct {
		write func(w *signing, uid, path string)
		want  string
	}{
		"nothing changed": {func(*signing, string, string) {}, "done"},
		"the passkey removed": {func(w *signing, uid, _ string) {
			w.passkeys(uid, func(s *passkey.Set) { s.Passkeys = nil })
		}, "asked passkey_missing"},
		"the enrolment's signature removed": {func(w *signing, uid, _ string) {
			w.passkeys(uid, func(s *passkey.Set) { s.Passkeys[0].Proof = nil })
		}, "forged_decision forged_decision"},
		"another public key": {func(w *signing, uid, _ string) {
			w.enrol(uid + "-other")
			var other passkey.Set
			w.passkeys(uid+"-other", func(s *passkey.Set) { other = *s })
			w.passkeys(uid, func(s *passkey.Set) { s.Passkeys[0].PublicKey = other.Passkeys[0].PublicKey })
		}, "forged_decision forged_decision"},
		"the assertion removed": {func(w *signing, _, path string) {
			w.rewrite(path, func(e *run.Event) {
				if e.Decided != nil {
					e.Decided.Passkey = nil
				}
			})
		}, "asked passkey_missing"},
		"another counter": {func(w *signing, _, path string) {
			w.rewrite(path, func(e *run.Event) {
				if e.Decided != nil {
					e.Decided.Passkey.AuthData[36]++
				}
			})
		}, "forged_decision forged_decision"},
		"an older counter before the decision": {func(w *signing, _, path string) {
			w.rewrite(path, func(e *run.Event) {
				if e.Decided != nil {
					e.Decided.Proof.Auth.Counter++
				}
			})
		}, "forged_decision forged_decision"},
	} {
		w.users++
		uid := fmt.Sprint("user-", w.users)
		key := w.enrol(uid)
		r := w.asks(uid)
		if a := w.confirms(uid, r, "approve_once", key); a.HTTP != http.StatusOK {
			t.Fatalf("%s: %d %s", name, a.HTTP, a.Body)
		}
		c.write(w, uid, document.RunPath(r.RunID))
		if got := w.settled(uid, r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestPasskeyNeededLater decides without a passkey. The rules that need one are in force when the call starts.
func TestPasskeyNeededLater(t *testing.T) {
	w := strong(t, "calls: [{tool: calendar_event_create}]")
	r := w.asks("ana")
	if got := w.decides("ana", r, "approve_once"); got != http.StatusOK {
		t.Fatalf("%d", got)
	}
	if _, err := testkit.Strong(w.options.Dir, mailRule); err != nil {
		t.Fatal(err)
	}
	w.with()
	if got := w.settled("ana", r); got != "asked passkey_missing" {
		t.Errorf("%s, want asked passkey_missing", got)
	}
}

// TestPasskeyForEntries always allows a recipient. The rule about always-allow entries is the only one.
func TestPasskeyForEntries(t *testing.T) {
	w := strong(t, "alwaysAllow: true")
	key := w.enrol("ana")
	r := w.asks("ana")
	if a := w.confirms("ana", r, "approve_and_always_allow_recipient", key); a.HTTP != http.StatusOK {
		t.Fatalf("%d %s", a.HTTP, a.Body)
	}
	if got := w.settled("ana", r); got != "done" {
		t.Fatalf("%s, want done", got)
	}
	if again := w.asks("ana"); again.Status == "awaiting_approval" || len(again.Approvals) > 0 {
		t.Errorf("the entry does not count: %s", again.Body)
	}
	docs, err := w.App.Store.Get(t.Context(), document.UserPath("ana"))
	if err != nil {
		t.Fatal(err)
	}
	var u run.User
	if err := document.Decode(docs[0], &u); err != nil {
		t.Fatal(err)
	}
	if len(u.Allow) != 1 || u.Allow[0].Passkey == nil || len(u.Allow[0].Passkey.Batch) != 2 {
		t.Fatalf("%+v", u.Allow)
	}
	u.Allow[0].Passkey = nil
	data, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.App.Store.Commit(t.Context(), store.Update(docs[0].Path, docs[0].Version, docs[0].Fields,
		data)); err != nil {
		t.Fatal(err)
	}
	if again := w.asks("ana"); len(again.Approvals) != 1 {
		t.Errorf("an entry without a passkey counts: %s", again.Body)
	}
}
