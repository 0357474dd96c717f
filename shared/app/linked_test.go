package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// A resume reads its user once, before the first call to a provider.

// TestLinkChangedDuringDraft changes the account, or disables the user, after resume has read them and before the
// intent is stored. The draft is created, but not sent.
func TestLinkChangedDuringDraft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(linked) error
		code   string
	}{
		"another account is linked": {func(w linked) error { w.link(work); return nil }, "stale_view"},
		"the account is unlinked":   {linked.forget, "reauth_required"},
		"the user is shut out": {func(w linked) error {
			_, err := w.App.API.Records.SetDisabled(w.t.Context(), "ana", true)
			return err
		}, "unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, w linked) {
				w.mail()
				r := w.ask()
				w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
				w.SetFault(func(op string) fakegoogle.Fault {
					if op == "gmail.drafts.create" {
						w.SetFault(nil)
						if err := c.change(w); err != nil {
							t.Error(err)
						}
					}
					return fakegoogle.Fault{}
				})
				w.deliver()
				v, _, err := w.App.API.Loop.Get(t.Context(), "ana", r.RunID)
				if c.code == "unauthenticated" { // they cannot read it
					if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", false); err != nil {
						t.Fatal(err)
					}
					v, _, err = w.App.API.Loop.Get(t.Context(), "ana", r.RunID)
				}
				if err != nil || len(v.Actions) != 1 || v.Actions[0].Status != "failed" ||
					string(v.Actions[0].ErrorReason) != c.code {
					t.Errorf("%+v, %v; want len(v.Actions) 1, v.Actions[0].Status “failed”, "+
						"v.Actions[0].ErrorReason %v",
						v.Actions[0], err, c.code)
				}
				if got := w.carriedOut(); got != "" {
					t.Errorf("done in %q", got)
				}
			})
		})
	}
}

// forget unlinks the account as another instance would, which leaves this instance's cached access token.
func (w linked) forget() error {
	_, err := google.Provider.Forget(w.t.Context(), w.App.Store, "ana", time.Now())
	return err
}

// TestLinkRemovedWithCachedToken unlinks an account, and links it again, while this instance has a cached access token.
func TestLinkRemovedWithCachedToken(t *testing.T) {
	for name, ask := range map[string]func(linked){"mail": linked.mail, "event": linked.event} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, w linked) {
				approved := func() testkit.Answer {
					r := w.ask()
					w.wants("the yes", w.decide(w.card(), "approve_once"), http.StatusOK, "")
					return r
				}
				ask(w)
				approved()
				w.deliver()
				if got := w.carriedOut(); got != home {
					t.Fatalf("done in %q, want %q: there is no token in memory", got, home)
				}
				r := approved()
				if err := w.forget(); err != nil {
					t.Fatal(err)
				}
				w.deliver()
				if a := w.run(r.RunID); len(a.Actions) != 1 || a.Actions[0].ErrorReason != "reauth_required" {
					t.Errorf("%s; want len(a.Actions) 1, a.Actions[0].ErrorReason “reauth_required”", a.Body)
				}
				w.link(work)
				approved()
				w.deliver()
				if got := w.carriedOut(); got != home+" "+work {
					t.Errorf("done in %q", got)
				}
			})
		})
	}
}

// TestLinkAddedDuringRun starts a run without an account.
func TestLinkAddedDuringRun(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		if err := w.forget(); err != nil {
			t.Fatal(err)
		}
		mails := testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "s", "b"))
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			if len(r.Responses()) == 0 {
				w.link(work)
			}
			return mails(r)
		})
		if r := w.ask(); r.Status != "awaiting_confirmation" {
			t.Fatalf("%s; want r.Status “awaiting_confirmation”", r.Body)
		}
		if got := w.card().from; got != testkit.Address(work) {
			t.Errorf("the card is from %q", got)
		}
	})
}
