package passkeys_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/passkeys"
	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/authenticator"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// world has the passkeys of one deployment, and its clock.
type world struct {
	*passkeys.Passkeys
	t   *testing.T
	now time.Time
}

func start(t *testing.T) *world {
	t.Helper()
	key, err := decision.NewKey(bytes.Repeat([]byte("e"), 32))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	site := passkey.Site{ID: testkit.ConsoleSite, Origin: testkit.Console, Console: testkit.Console}
	w.Passkeys = &passkeys.Passkeys{Store: memory.New(clock), Now: clock,
		Strong: &passkey.Strong{Site: site, Keys: key.Ring("here").For(passkey.EnrolmentDomain)}}
	return w
}

// add adds the passkey of an authenticator after the time.
func (w *world) add(key *authenticator.Key, name string, later time.Duration) (passkeys.View, error) {
	w.t.Helper()
	if _, err := w.Begin(w.t.Context(), "ana", "ana"); err != nil {
		return passkeys.View{}, err
	}
	var set passkey.Set
	if _, err := document.Get(w.t.Context(), w.Store, document.PasskeysPath("ana"), &set); err != nil {
		w.t.Fatal(err)
	}
	w.now = w.now.Add(later)
	return w.Add(w.t.Context(), "ana", passkeys.New{Name: name, Auth: decision.Auth{At: w.now, Methods: "mfa"},
		Answer: key.Create(passkey.Encode(set.Pending.Challenge))})
}

func TestProofOfPerson(t *testing.T) {
	w := start(t)
	for _, c := range []struct {
		methods string
		ago     time.Duration
		want    passkeys.Proof
	}{
		{"mfa", 0, passkeys.ByToken},
		{"pwd otp", 9 * time.Minute, passkeys.ByToken},
		{"pin hwk", time.Second, passkeys.ByToken},
		{"mfa", 10 * time.Minute, passkeys.ByCode},
		{"pwd", 0, passkeys.ByCode},
		{"otp", 0, passkeys.ByCode},
		{"pwd pin", 0, passkeys.ByCode},
		{"xmfa", 0, passkeys.ByCode},
		{"", 0, passkeys.ByCode},
	} {
		if got := w.ProofFor(decision.Auth{At: w.now.Add(-c.ago), Methods: c.methods}); got != c.want {
			t.Errorf("%q, %s ago: %s, want %s", c.methods, c.ago, got, c.want)
		}
	}
	if got := w.ProofFor(decision.Auth{Methods: "mfa"}); got != passkeys.ByCode {
		t.Errorf("no time: %s, want %s", got, passkeys.ByCode)
	}
}

func TestAddedNames(t *testing.T) {
	longest := strings.Repeat("x", 60)
	for name, want := range map[string]string{" Laptop ": "Laptop", "": "Passkey", longest: longest,
		longest + "x": "", "a\nb": "", "a\u202eb": ""} {
		w := start(t)
		v, err := w.add(testkit.NewKey(), name, 0)
		if (err == nil) != (want != "") || v.Name != want {
			t.Errorf("%q: %q %v, want %q", name, v.Name, err, want)
		}
	}
}

// TestEndedEnrolment answers a challenge too late, and one authenticator twice.
func TestEndedEnrolment(t *testing.T) {
	w := start(t)
	_, err := w.add(testkit.NewKey(), "late", 10*time.Minute)
	if !fault.Is(err, fault.Policy, fault.CodePasskeyRefused) {
		t.Errorf("after 10 minutes: %v, want passkey_refused", err)
	}
	key := testkit.NewKey()
	if _, err := w.add(key, "first", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.add(key, "again", 0); !fault.Is(err, fault.Policy, fault.CodePasskeyRefused) {
		t.Errorf("the same authenticator: %v, want passkey_refused", err)
	}
	if all, err := w.List(t.Context(), "ana"); err != nil || len(all) != 1 || all[0].Name != "first" {
		t.Errorf("%v %v, want the first", all, err)
	}
}
