package google_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

const (
	clientID     = "client-1"
	clientSecret = "client-secret-0"
	redirectURL  = "http://127.0.0.1:8080/api/agent/connections/google/callback"

	compose = "https://www.googleapis.com/auth/gmail.compose"
	events  = "https://www.googleapis.com/auth/calendar.events"
)

// env is the environment of these tests: a provider, a store, and one or more instances on that store.
type env struct {
	t        *testing.T
	provider *provider
	store    *faulty.Store
	cipher   tink.AEADWithContext

	mu sync.Mutex
	at time.Time
}

func newEnv(t *testing.T) *env {
	w := &env{t: t, at: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	w.provider = newProvider(t, w.now)
	st, err := embedded.OpenMemory(w.now)
	w.store = faulty.Wrap(cleanup.Close(t, st, err))
	if w.cipher, err = tokenkey.Local(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *env) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *env) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// instance returns one process's Accounts: it shares the store with the others, but no memory.
func (w *env) instance(change ...func(*google.Config)) *linking.Accounts {
	return w.on(w.store, change...)
}

// overtaken returns an instance that calls overtake right after its nth read.
func (w *env) overtaken(nth int, overtake func()) *linking.Accounts {
	return w.on(faulty.Wrap(w.store, faulty.Gets(faulty.Nth(nth, faulty.After(func(*faulty.Call) { overtake() })))))
}

func (w *env) on(st store.Store, change ...func(*google.Config)) *linking.Accounts {
	w.t.Helper()
	base := w.provider.srv.URL
	cfg := google.Config{
		ClientID: clientID, ClientSecret: clientSecret, RedirectURL: redirectURL, Scopes: []string{compose, events},
		AuthURL: base + "/auth", TokenURL: base + "/token", RevokeURL: base + "/revoke",
		HTTPClient: &http.Client{Timeout: await.Most}, Now: w.now,
	}
	for _, c := range change {
		c(&cfg)
	}
	a, err := google.New(cfg, st, w.cipher)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// consents starts a consent, and returns the answer of a user who consents at the provider.
func (w *env) consents(a *linking.Accounts, uid, returnTo string) linking.Answer {
	w.t.Helper()
	consent, err := a.Start(w.t.Context(), uid, nil, returnTo)
	if err != nil {
		w.t.Fatal(err)
	}
	state, code := w.provider.consent(consent.URL, "one@example.com")
	return linking.Answer{State: state, Code: code, Browser: consent.Browser}
}

func (w *env) link(a *linking.Accounts, uid, account string, scopes []string, untick ...string) error {
	w.t.Helper()
	consent, err := a.Start(w.t.Context(), uid, scopes, "/settings")
	if err != nil {
		w.t.Fatal(err)
	}
	state, code := w.provider.consent(consent.URL, account, untick...)
	gotUID, returnTo, err :=
		a.Callback(w.t.Context(), linking.Answer{State: state, Code: code, Browser: consent.Browser})
	if gotUID != uid || returnTo != "/settings" {
		w.t.Fatalf("the callback is for %q and leads to %q (%v)", gotUID, returnTo, err)
	}
	return err
}

func (w *env) linked(a *linking.Accounts, uid, account string, scopes ...string) {
	w.t.Helper()
	if err := w.link(a, uid, account, scopes); err != nil {
		w.t.Fatal(err)
	}
}

// check reports whether the user's account may be used.
func check(ctx context.Context, a *linking.Accounts, uid string, scopes []string) error {
	_, err := a.Place(ctx, uid, scopes)
	return err
}

// clientOf returns a client of the user's account that is linked now.
func clientOf(ctx context.Context, a *linking.Accounts, uid string, scopes ...string) (*http.Client, error) {
	in, err := a.Place(ctx, uid, scopes)
	if err != nil {
		return nil, err
	}
	return a.Client(ctx, uid, in)
}

func (w *env) client(a *linking.Accounts, uid string, scopes ...string) *http.Client {
	w.t.Helper()
	c, err := clientOf(w.t.Context(), a, uid, scopes...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// ask calls the API and returns the account whose token it saw.
func (w *env) ask(c *http.Client) (account string, status int, err error) {
	resp, err := c.Post(w.provider.srv.URL+"/api", "text/plain", strings.NewReader("hello"))
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	var answer struct{ Account, Body string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", resp.StatusCode, err
	}
	if resp.StatusCode == http.StatusOK && answer.Body != "hello" {
		w.t.Errorf("the API received %q", answer.Body)
	}
	return answer.Account, resp.StatusCode, nil
}

func (w *env) expect(err error, class fault.Class, code fault.Code) {
	w.t.Helper()
	if !fault.Is(err, class, code) {
		w.t.Fatalf("got %v, want %s %s", err, class, code)
	}
	w.keepsSecrets(err)
}

// keepsSecrets checks that neither the error nor any of its causes contains a secret.
func (w *env) keepsSecrets(err error) {
	w.t.Helper()
	w.provider.mu.Lock()
	defer w.provider.mu.Unlock()
	for ; err != nil; err = errors.Unwrap(err) {
		for secret := range w.provider.seen {
			if strings.Contains(err.Error(), secret) {
				w.t.Errorf("the error tells a secret: %v", err)
			}
		}
		if strings.Contains(err.Error(), clientSecret) {
			w.t.Errorf("the error tells the client's secret: %v", err)
		}
	}
}

// failingReader is a source of randomness that always fails.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
