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
