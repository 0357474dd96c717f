package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/signs"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// signing is a deployment whose decisions can be signed.
type signing struct {
	*proved
	options testkit.Options // without DECISIONS
	kms     *fakekms.Service
	users   int
}

// onSigningStores runs a test on the embedded store with its own key, and on Firestore with a key of Cloud KMS.
func onSigningStores(t *testing.T, test func(*testing.T, *signing)) {
	service, err := fakekms.Start(bytes.Repeat([]byte("k"), ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	t.Run("embedded", func(t *testing.T) {
		o := testkit.Options{Dir: t.TempDir(), Settings: testkit.Unlimited}
		test(t, &signing{deployWith(t, o), o, service, 0})
	})
	t.Run("firestore", func(t *testing.T) {
		host := emulators.Firestore(t)
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		public, err := decision.FormatKey(service.Public())
		if err != nil {
			t.Fatal(err)
		}
		o := testkit.Options{Dir: t.TempDir(), Settings: append([]string{"STORE=firestore", "QUEUE=embedded",
			"FIRESTORE_EMULATOR_HOST=" + host, "GOOGLE_CLOUD_PROJECT=demo-" + strings.ToLower(rand.Text()[:20]),
			"DECISION_KMS_KEY=" + fakekms.Version, "DECISION_PUBLIC_KEYS=" + public}, testkit.Unlimited...),
			App: []app.Option{app.Replace(signs.With(service.Client()...))}}
		test(t, &signing{deployWith(t, o), o, service, 0})
	})
}

// with restarts the deployment with further settings.
func (w *signing) with(settings ...string) {
	w.t.Helper()
	o := w.options
	o.Settings = append(slices.Clone(o.Settings), settings...)
	w.restart(o, func() {})
}

// asks lets a user ask for an e-mail to bob.
func (w *signing) asks(uid string) testkit.Answer {
	w.t.Helper()
	w.mail()
	a, err := w.Ask(w.t.Context(), uid, "please do it")
	if err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%v %s; want a.HTTP %v", err, a.Body, http.StatusOK)
	}
	return a
}

// decides decides about the only card, and returns the status code of the answer.
func (w *signing) decides(uid string, r testkit.Answer, decision string) int {
	w.t.Helper()
	a, err := w.Resolve(w.t.Context(), uid, r.Approvals[0], decision)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.HTTP
}

// settled continues the runs that were decided about, and returns what became of one: "done", "asked", or the code of
// the error, with the rules that the audit log has.
func (w *signing) settled(uid string, r testkit.Answer) string {
	w.t.Helper()
	w.deliver()
	now, err := w.Run(w.t.Context(), uid, r.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	became := fmt.Sprintf("%d", now.HTTP)
	switch sent := len(w.EffectsOf(uid)); {
	case len(now.Approvals) > 0 && sent == 0:
		became = "asked"
	case sent == 1:
		became = "done"
	case len(now.Actions) > 0:
		became = now.Actions[0].ErrorReason
	}
	for d, err := range document.All(w.t.Context(), w.App.Store, document.AuditOfChain(r.RunID, 100)) {
		if err != nil {
			w.t.Fatal(err)
		}
		if e, err := audit.Decode(d.Data); err != nil || e.Kind == audit.Refused {
			became += " " + e.Rule
		}
	}
	return became
}

// TestSwitchSigningOn decides in one state of a deployment, and executes in the next: the steps in which an operator
// switches signing on, and off again.
func TestSwitchSigningOn(t *testing.T) {
	realpart.Unraced(t)
	forged := func(e *run.Event) {
		if e.Decided != nil {
			e.Decided.Proof = &decision.Signature{Key: "mine", Sig: make([]byte, 64)}
		}
	}
	removed := func(e *run.Event) {
		if e.Decided != nil {
			e.Decided.Proof = nil
		}
	}
	onSigningStores(t, func(t *testing.T, w *signing) {
		for _, c := range []struct {
			decided, executed string
			write             func(*run.Event)
			want              string
		}{
			{"off", "off", nil, "done"},
			{"off", "sign", nil, "done"},
			{"off", "require", nil, "asked unsigned_decision"},
			{"sign", "require", nil, "done"},
			{"require", "off", nil, "done"},
			{"sign", "sign", removed, "done"},
			{"sign", "sign", forged, "forged_decision forged_decision"},
			{"require", "require", removed, "asked unsigned_decision"},
			{"require", "require", forged, "forged_decision forged_decision"},
		} {
			w.users++
			uid := fmt.Sprint("user", w.users)
			w.with("DECISIONS=" + c.decided)
			_, before := w.kms.Calls()
			r := w.asks(uid)
			if code := w.decides(uid, r, "approve_once"); code != http.StatusOK {
				t.Fatalf("%v: the yes was answered with %d", c, code)
			}
			w.with("DECISIONS=" + c.executed)
			if c.write != nil && !w.rewrite(document.RunPath(r.RunID), c.write) {
				t.Fatalf("%v: nothing was changed", c)
			}
			if got := w.settled(uid, r); got != c.want {
				t.Errorf("decided with %s, executed with %s: %s, want %s", c.decided, c.executed, got, c.want)
			}
			_, after := w.kms.Calls()
			want := 0
			if c.decided != "off" && w.options.App != nil {
				want = 1
			}
			if after-before != want {
				t.Errorf("%s, then %s: %d signatures for one yes, want %d", c.decided, c.executed, after-before, want)
			}
		}
	})
}

// TestSignedAlwaysAllowBeforeSigning lets a user always allow an address while decisions are not signed. With
// DECISIONS=sign the entry still counts. With require the user is asked, and the entry that they store then counts.
func TestSignedAlwaysAllowBeforeSigning(t *testing.T) {
	onSigningStores(t, func(t *testing.T, w *signing) {
		const always = "approve_and_always_allow_recipient"
		waits := func(uid string) testkit.Answer {
			t.Helper()
			r := w.asks(uid)
			if len(r.Approvals) != 1 {
				t.Fatalf("%s is not asked: %s", uid, r.Body)
			}
			return r
		}
		w.with("DECISIONS=off")
		w.decides("ann", waits("ann"), always)
		w.deliver()
		w.with("DECISIONS=sign")
		if r := w.asks("ann"); len(r.Approvals) != 0 {
			t.Errorf("ann is asked although nothing requires a signature: %s", r.Body)
		}
		w.with("DECISIONS=require")
		_, before := w.kms.Calls()
		w.decides("ann", waits("ann"), always)
		if _, after := w.kms.Calls(); w.options.App != nil && after-before != 1 {
			t.Errorf("%d signatures for a yes and its entry", after-before)
		}
		w.deliver()
		if r := w.asks("ann"); len(r.Approvals) != 0 {
			t.Errorf("ann is asked although the entry is signed: %s", r.Body)
		}
	})
}

// TestSignedDecisionsWithoutSigner checks a function without the right to sign: while signatures are required it
// records no yes, and a no is recorded.
func TestSignedDecisionsWithoutSigner(t *testing.T) {
	onSigningStores(t, func(t *testing.T, w *signing) {
		if w.options.App == nil {
			return // the embedded store's only process signs
		}
		w.options.App = []app.Option{app.Replace(app.Part{Name: "decisions"})}
		w.with("DECISIONS=require")
		r := w.asks("ann")
		if code := w.decides("ann", r, "approve_once"); code != http.StatusServiceUnavailable {
			t.Errorf("a yes without a signature is answered with %d", code)
		}
		if code := w.decides("ann", r, "reject"); code != http.StatusOK {
			t.Errorf("a no is answered with %d", code)
		}
	})
}
