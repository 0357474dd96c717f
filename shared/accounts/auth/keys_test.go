package auth_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const (
	discoveryAt = firebase + "/.well-known/openid-configuration"
	keysAt      = firebase + "/jwks"
)

func TestKeysFetchedOnce(t *testing.T) {
	w := newInternet(t)
	w.hold = make(chan struct{})
	v := w.verifier(t, nil)
	if len(w.requests) != 0 {
		t.Fatalf("the constructor has fetched %v", w.requests)
	}
	token := w.sign(t, w.users, w.userClaims())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := v.User(request("Bearer " + token)); err != nil {
				t.Error(err)
			}
		})
	}
	close(w.hold)
	wg.Wait()
	if w.count(discoveryAt) != 1 || w.count(keysAt) != 1 {
		t.Errorf("20 first callers made %v", w.requests)
	}
}

func TestKeyFetchesLimited(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, nil)
	for range 50 {
		forged := forge(t, claimSet{"alg": "RS256", "kid": "unknown"}, w.userClaims(), keys()["evil"], nil)
		if _, err := v.User(request("Bearer " + forged)); status(err) != http.StatusUnauthorized {
			t.Fatalf("got %v; want status(err) %v", err, http.StatusUnauthorized)
		}
	}
	if w.count(keysAt) != 1 {
		t.Errorf("50 unknown key ids made %d fetches", w.count(keysAt))
	}
	// A wrong signature under a known key id must not cause a fetch.
	w.now = w.now.Add(time.Minute)
	forged := forge(t, claimSet{"alg": "RS256", "kid": issuer.KeyID(keys()["good"])}, w.userClaims(), keys()["evil"],
		nil)
	if _, err := v.User(request("Bearer " + forged)); status(err) != http.StatusUnauthorized || w.count(keysAt) != 1 {
		t.Errorf("got %v after %d fetches", err, w.count(keysAt))
	}
}

func TestRotation(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, nil)
	old := w.users
	if _, err := v.User(request("Bearer " + w.sign(t, old, w.userClaims()))); err != nil {
		t.Fatal(err)
	}
	next := w.issuer(t, firebase, "next")
	w.hosts["securetoken.google.com"] = next

	w.now = w.now.Add(11 * time.Second)
	if _, err := v.User(request("Bearer " + w.sign(t, next, w.userClaims()))); err != nil {
		t.Errorf("the new key is not found: %v", err)
	}
	if _, err := v.User(request("Bearer " + w.sign(t, old, w.userClaims()))); status(err) != http.StatusUnauthorized {
		t.Errorf("the key that its issuer has withdrawn is still good: %v", err)
	}
}

func TestKeyWithdrawn(t *testing.T) {
	w := newInternet(t)
	v := w.verifier(t, nil)
	old := w.users
	if _, err := v.User(request("Bearer " + w.sign(t, old, w.userClaims()))); err != nil {
		t.Fatal(err)
	}
	w.hosts["securetoken.google.com"] = w.issuer(t, firebase, "next")
	w.now = w.now.Add(time.Hour + time.Second)
	if _, err := v.User(request("Bearer " + w.sign(t, old, w.userClaims()))); status(err) != http.StatusUnauthorized {
		t.Errorf("an hour later the withdrawn key is still good: %v", err)
	}
}

func TestIssuerDown(t *testing.T) {
	w := newInternet(t)
	w.setDown(true)
	v := w.verifier(t, nil)
	for range 5 {
		_, err := v.User(request("Bearer " + w.sign(t, w.users, w.userClaims())))
		if !fault.Is(err, fault.Tool, "issuer_unavailable") || fault.As(err).RetryAfter == 0 {
			t.Fatalf("got %v, want issuer_unavailable", err)
		}
	}
	if n := w.count(discoveryAt); n != 1 {
		t.Errorf("%d tries within a second", n)
	}
	w.setDown(false)
	w.now = w.now.Add(time.Second)
	if _, err := v.User(request("Bearer " + w.sign(t, w.users, w.userClaims()))); err != nil {
		t.Fatalf("the issuer is back: %v", err)
	}
	// The keys outlive an outage of the issuer, but not forever.
	w.setDown(true)
	w.now = w.now.Add(2 * time.Hour)
	if _, err := v.User(request("Bearer " + w.sign(t, w.users, w.userClaims()))); err != nil {
		t.Errorf("two hours into an outage: %v", err)
	}
	w.now = w.now.Add(23 * time.Hour)
	if _, err := v.User(request("Bearer " + w.sign(t, w.users, w.userClaims()))); err == nil {
		t.Error("a day into an outage old keys are still good")
	}
}

// TestIssuerAsksToWait makes an issuer answer with 429 or 503 and Retry-After, for its discovery document or its keys.
// The next request follows after that time, or after 5 minutes if the issuer asks for longer.
func TestIssuerAsksToWait(t *testing.T) {
	for name, c := range map[string]struct {
		path, after string
		status      int
		waits       time.Duration
	}{
		"keys in seconds":      {"/jwks", "90", 429, 90 * time.Second},
		"discovery in seconds": {"/.well-known/openid-configuration", "90", 503, 90 * time.Second},
		"keys by a date":       {"/jwks", "Fri, 21 Nov 2025 09:01:30 GMT", 503, 90 * time.Second},
		"for too long":         {"/jwks", "86400", 503, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			w.now = time.Date(2025, 11, 21, 9, 0, 0, 0, time.UTC)
			host := strings.TrimPrefix(firebase, "https://")
			host, _, _ = strings.Cut(host, "/")
			genuine := w.hosts[host]
			busy := true
			w.hosts[host] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if !busy || !strings.HasSuffix(r.URL.Path, c.path) {
					genuine.ServeHTTP(rw, r)
					return
				}
				rw.Header().Set("Retry-After", c.after)
				rw.WriteHeader(c.status)
			})
			v := w.verifier(t, nil)
			sign := func() error {
				_, err := v.User(request("Bearer " + w.sign(t, w.users, w.userClaims())))
				return err
			}
			first := sign()
			asked := w.count(firebase + c.path)
			w.now = w.now.Add(10 * time.Second)
			if got, want := fault.As(sign()).RetryAfter, c.waits-10*time.Second; got != want {
				t.Errorf("the client is asked to wait for %s; want %s", got, want)
			}
			w.now = w.now.Add(c.waits - 11*time.Second)
			if err := sign(); !fault.Is(err, fault.Tool, "issuer_unavailable") || w.count(firebase+c.path) != asked {
				t.Errorf("a second before, %v with %d more requests; want issuer_unavailable with none (first %v)", err,
					w.count(firebase+c.path)-asked, first)
			}
			busy = false
			w.now = w.now.Add(time.Second)
			if err := sign(); err != nil {
				t.Errorf("after that time: %v", err)
			}
		})
	}
}

func TestKeyFetchCancelled(t *testing.T) {
	w := newInternet(t)
	w.hold = make(chan struct{})
	v := w.verifier(t, nil)
	req := request("Bearer " + w.sign(t, w.users, w.userClaims()))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.User(req.WithContext(gone)); !fault.Is(err, fault.Tool, "issuer_unavailable") {
		t.Fatalf("got %v; want error %v issuer_unavailable", err, fault.Tool)
	}
	close(w.hold)
	if _, err := v.User(req); err != nil {
		t.Errorf("the next caller: %v", err)
	}
	if w.count(keysAt) != 1 {
		t.Errorf("the fetch was thrown away with its first caller: %v", w.requests)
	}
}

func TestKeySetsRefused(t *testing.T) {
	for name, document := range map[string]string{
		"keys over plain http": `{"issuer":"` + firebase + `","jwks_uri":"http://keys.example/jwks"}`,
		"another issuer":       `{"issuer":"https://evil.example","jwks_uri":"` + keysAt + `"}`,
		"no keys":              `{"issuer":"` + firebase + `"}`,
		"not JSON":             `<html>`,
		"over 1 MiB": `{"issuer":"` + firebase + `","jwks_uri":"` + keysAt +
			`","x":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newInternet(t)
			w.hosts["securetoken.google.com"] = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				_, _ = rw.Write([]byte(document))
			})
			_, err := w.verifier(t, nil).User(request("Bearer " + w.sign(t, w.users, w.userClaims())))
			if !fault.Is(err, fault.Tool, "issuer_unavailable") {
				t.Errorf("got %v; want error %v issuer_unavailable", err, fault.Tool)
			}
			if len(w.requests) != 1 {
				t.Errorf("more than discovery was fetched: %v", w.requests)
			}
		})
	}
}
