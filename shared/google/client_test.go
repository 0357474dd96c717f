package google_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/google/tokenkey"
)

func TestRejectedAccessToken(t *testing.T) {
	w := newWorld(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	c := w.client(a, "u1")
	w.provider.forgetAccess()
	if account, status, err := w.ask(c); err != nil || status != 200 || account != "one@example.com" {
		t.Fatalf("after a 401: %q, %d, %v", account, status, err)
	}
	if api, refreshes := w.provider.count("api"), w.provider.count("refresh_token"); api != 2 || refreshes != 2 {
		t.Errorf("%d calls and %d refreshes, want two each", api, refreshes)
	}

	// A body that cannot be read twice is not sent twice.
	w.provider.forgetAccess()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.provider.srv.URL+"/api", io.NopCloser(strings.NewReader("hello")))
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

	// The consent is gone too: the user has to link again, and learns it from the first call.
	w.provider.forgetConsent()
	_, _, err = w.ask(c)
	w.expect(err, fault.Auth, fault.CodeReauth)
}

func TestRequestIsLeftAsItWas(t *testing.T) {
	w := newWorld(t)
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

func TestTokenDoesNotFollowRedirects(t *testing.T) {
	w := newWorld(t)
	a := w.instance()
	w.linked(a, "u1", "one@example.com", compose)
	resp, err := w.client(a, "u1").Get(w.provider.srv.URL + "/away")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestUnlink(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*world)
		revoked bool
	}{
		"Google agrees":       {func(*world) {}, true},
		"already taken back":  {func(w *world) { w.provider.forgetConsent() }, true},
		"Google fails":        {func(w *world) { w.provider.set(func(p *provider) { p.revokes = 500 }) }, false},
		"Google is not there": {func(w *world) { w.provider.srv.Close() }, false},
		"the key is lost": {func(w *world) {
			other, err := tokenkey.Local(w.t.TempDir())
			if err != nil {
				w.t.Fatal(err)
			}
			w.cipher = other
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.linked(w.instance(), "u1", "one@example.com", compose)
			c.spoil(w)
			a := w.instance()
			got, err := a.Unlink(t.Context(), "u1")
			if err != nil || !got.Existed || got.Revoked != c.revoked {
				t.Errorf("got %+v (%v), want revoked %v", got, err, c.revoked)
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

func TestUnlinkForgetsTheTokenInMemory(t *testing.T) {
	w := newWorld(t)
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
