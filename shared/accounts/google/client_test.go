package google_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
)

func TestRejectedAccessToken(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	c := w.client(a, "u1")
	w.provider.forgetAccess()
	account, status, err := w.ask(c)
	if got := fmt.Sprint(account, " ", status, " ", err); got != "one@example.com 200 <nil>" {
		t.Fatalf("after a 401: %s; want one@example.com 200", got)
	}
	if api, refreshes := w.provider.count("api"), w.provider.count("refresh_token"); api != 2 || refreshes != 2 {
		t.Errorf("%d calls and %d refreshes, want two each", api, refreshes)
	}

	// A body that cannot be read twice is not sent twice.
	w.provider.forgetAccess()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.provider.srv.URL+"/api",
		io.NopCloser(strings.NewReader("hello")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || w.provider.count("api") != 3 {
		t.Errorf("got %d after %d calls", resp.StatusCode, w.provider.count("api"))
	}

	// The consent is gone too: the user has to link again, as the first call reports.
	w.provider.forgetConsent()
	_, _, err = w.ask(c)
	w.expect(err, fault.Auth, fault.CodeReauth)
}

func TestClientKeepsRequest(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.provider.srv.URL+"/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client(a, "u1").Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if req.Header.Get("Authorization") != "" {
		t.Error("the token is written into the caller's request")
	}
}

func TestClientTokenWithRedirects(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	resp, err := w.client(a, "u1").Get(w.provider.srv.URL + "/away")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("got %d; want %v", resp.StatusCode, http.StatusFound)
	}
}

func TestUnlink(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*env)
		revoked bool
	}{
		"Google agrees":       {func(*env) {}, true},
		"already taken back":  {func(w *env) { w.provider.forgetConsent() }, true},
		"Google fails":        {func(w *env) { w.provider.set(func(p *provider) { p.revokes = 500 }) }, false},
		"Google is not there": {func(w *env) { w.provider.srv.Close() }, false},
		"the key is lost": {func(w *env) {
			other, err := tokenkey.Local(w.t.TempDir())
			if err != nil {
				w.t.Fatal(err)
			}
			w.cipher = other
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.linked(w.instance(), "u1", "one@example.com", compose)
			c.spoil(w)
			a := w.instance()
			got, err := a.Unlink(t.Context(), "u1")
			if want := (linking.Unlinked{Existed: true, Revoked: c.revoked}); err != nil || got != want {
				t.Errorf("Unlink = %+v, %v; want %+v", got, err, want)
			}
			if list, err := a.List(t.Context(), "u1"); err != nil || len(list) != 0 {
				t.Errorf("the link is still there: %+v (%v)", list, err)
			}
			if again, err := a.Unlink(t.Context(), "u1"); err != nil || again.Existed {
				t.Errorf("a second time: %+v (%v)", again, err)
			}
		})
	}
}

// TestLinksInAudit links an account, links it again, unlinks it, and has an operator remove it. Each step adds an entry
// to the user's own chain, with the link's ID and without the address.
func TestLinksInAudit(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	w.linked(a, "u1", "two@example.com", compose)
	for range 2 { // the second time there is no link
		if _, err := a.Unlink(t.Context(), "u1"); err != nil {
			t.Fatal(err)
		}
	}
	w.linked(a, "u1", "one@example.com", compose)
	if existed, err := google.Provider.Forget(t.Context(), w.store, "u1", w.now()); err != nil || !existed {
		t.Fatal(existed, err)
	}
	docs, err := w.store.Query(t.Context(), store.Query{Collection: "audit", OrderBy: "seq", Limit: 100,
		Where: []store.Filter{{Field: "runId", Op: "==", Value: audit.UserChain("u1")}}})
	if err != nil {
		t.Fatal(err)
	}
	var entries []audit.Entry
	got := ""
	for _, d := range docs {
		e, err := audit.Decode(d.Data)
		if err != nil || e.UID != "u1" || e.Ref == "" || strings.Contains(string(d.Data), "example.com") {
			t.Errorf("%s (%v)", d.Data, err)
		}
		entries, got = append(entries, e), got+" "+e.Kind
	}
	if want := " linked linked unlinked linked unlinked"; got != want {
		t.Fatalf("the chain is%s, want%s: %+v", got, want, entries)
	}
	if entries[0].Ref == entries[1].Ref || entries[1].Ref != entries[2].Ref {
		t.Errorf("the first account's entry has %q, the second one's %q and %q; want two accounts",
			entries[0].Ref, entries[1].Ref, entries[2].Ref)
	}
	if wrong := audit.Verify(entries, audit.HeadOf(entries)); len(wrong) > 0 {
		t.Error(wrong)
	}
}

func TestUnlinkWithCachedToken(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	c := w.client(a, "u1")
	if _, err := a.Unlink(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.ask(c); !fault.Is(err, fault.Auth, fault.CodeReauth) {
		t.Errorf("a client made before still works: %v", err)
	}
}
