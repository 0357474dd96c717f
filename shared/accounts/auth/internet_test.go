package auth_test

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const (
	project     = "demo-agent"
	firebase    = "https://securetoken.google.com/" + project
	google      = "https://accounts.google.com"
	pushAccount = "push@demo-agent.iam.gserviceaccount.com"
	pushTarget  = "https://resume.example/"
)

// keys returns the test keys. They are generated once, because that takes longer than the rest of the tests.
var keys = sync.OnceValue(func() map[string]*rsa.PrivateKey {
	made := map[string]*rsa.PrivateKey{}
	for _, name := range []string{"good", "evil", "next"} {
		key, err := issuer.NewKey()
		if err != nil {
			panic(err)
		}
		made[name] = key
	}
	return made
})

// internet is what the verifiers can reach: the issuers at their real addresses, and nothing else.
type internet struct {
	now     time.Time
	users   *issuer.Issuer
	pushers *issuer.Issuer

	mu       sync.Mutex
	hosts    map[string]http.Handler
	requests map[string]int // by address
	down     bool
	hold     chan struct{} // if set, requests wait for it
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	w := &internet{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), requests: map[string]int{}}
	w.users = w.issuer(t, firebase, "good")
	w.pushers = w.issuer(t, google, "good")
	w.hosts = map[string]http.Handler{"securetoken.google.com": w.users, "accounts.google.com": w.pushers}
	return w
}

func (w *internet) issuer(t testing.TB, address, key string) *issuer.Issuer {
	t.Helper()
	i, err := issuer.New(address, keys()[key], w.clock)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (w *internet) clock() time.Time { return w.now }

func (w *internet) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests[r.URL.String()]++
	host, down, hold := w.hosts[r.URL.Host], w.down, w.hold
	w.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if down || host == nil {
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	}
	rec := httptest.NewRecorder()
	host.ServeHTTP(rec, r)
	return rec.Result(), nil
}

func (w *internet) count(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests[address]
}

func (w *internet) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

func (w *internet) verifier(t testing.TB, change func(*auth.Config)) *auth.Verifier {
	t.Helper()
	cfg := auth.Config{Issuer: firebase, Audience: project, HTTPClient: &http.Client{Transport: w}, Now: w.clock}
	if change != nil {
		change(&cfg)
	}
	v, err := auth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (w *internet) push(t testing.TB, change func(*auth.PushConfig)) *auth.PushVerifier {
	t.Helper()
	cfg := auth.PushConfig{Audience: pushTarget, ServiceAccount: pushAccount, HTTPClient: &http.Client{Transport: w},
		Now: w.clock}
	if change != nil {
		change(&cfg)
	}
	p, err := auth.NewPush(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// userClaims returns the claims of a token that is accepted.
func (w *internet) userClaims() map[string]any {
	at := w.now.Unix()
	return map[string]any{
		"iss": firebase, "aud": project, "sub": "userA", "email": "a@example.com", "email_verified": true,
		"iat": at, "auth_time": at, "exp": at + 3600, "firebase": map[string]any{"sign_in_provider": "password"},
	}
}

func (w *internet) pushClaims() map[string]any {
	at := w.now.Unix()
	return map[string]any{
		"iss": google, "aud": pushTarget, "sub": "1234567890", "azp": "1234567890", "email": pushAccount,
		"email_verified": true,
		"iat":            at, "exp": at + 3600,
	}
}

func (w *internet) sign(t testing.TB, i *issuer.Issuer, claims map[string]any) string {
	t.Helper()
	token, err := i.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/agent/run", nil)
	r.Header["Authorization"] = authorization
	return r
}

// status returns the HTTP status for the error, and 200 for nil.
func status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return fault.As(err).Status()
}
