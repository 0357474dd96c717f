package github_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

const (
	clientID     = "Iv1.0123456789abcdef"
	clientSecret = "client-secret-0"
	redirectURL  = "http://127.0.0.1:8080/api/agent/connections/github/callback"
)

// env is the environment of these tests: a GitHub, a store, and one or more instances on that store.
type env struct {
	t      *testing.T
	oauth  *fakegithub.OAuth
	url    string
	store  *faulty.Store
	cipher tink.AEADWithContext

	mu     sync.Mutex
	at     time.Time
	bearer string                          // the token of the last request that had one
	calls  map[string]int                  // by path
	wrap   func(http.Handler) http.Handler // around the token endpoint; nil: nothing
}

func newEnv(t *testing.T, eternal ...bool) *env {
	t.Helper()
	w := &env{t: t, at: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), calls: map[string]int{}}
	w.oauth = fakegithub.NewOAuth(fakegithub.OAuthOptions{Eternal: len(eternal) > 0,
		Client: fakeoauth.Client{ClientID: clientID, ClientSecret: clientSecret, Redirect: redirectURL,
			Key: []byte("of this test"), Now: w.now}})
	mux := http.NewServeMux()
	w.oauth.Routes(mux, "", "")
	mux.Handle("/", fakegithub.New(fakegithub.Options{User: w.oauth.User, Now: w.now}))
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.calls[r.Method+" "+r.URL.Path]++
		wrap := w.wrap
		if b, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			w.bearer = b
		}
		w.mu.Unlock()
		if wrap != nil && r.URL.Path == tokenPath {
			wrap(mux).ServeHTTP(rw, r)
			return
		}
		mux.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	st, err := embedded.OpenMemory(w.now)
	w.store = faulty.Wrap(cleanup.Close(t, st, err))
	if w.cipher, err = tokenkey.Local(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return w
}

const (
	tokenPath = "/login/oauth/access_token"
	grantPath = "/applications/" + clientID + "/grant"
)

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

func (w *env) count(call string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[call]
}

// around lets wrap handle the requests of the token endpoint. nil ends that.
func (w *env) around(wrap func(http.Handler) http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrap = wrap
}

// instance returns the accounts of one process. It shares the store with the others, but no memory.
func (w *env) instance() *linking.Accounts { return w.on(w.store) }

func (w *env) on(st store.Store) *linking.Accounts {
	w.t.Helper()
	a, err := github.New(github.Config{ClientID: clientID, ClientSecret: clientSecret, RedirectURL: redirectURL,
		URL: w.url, APIURL: w.url, HTTPClient: &http.Client{Timeout: await.Most}, Now: w.now}, st, w.cipher)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// begin starts a consent and grants it.
func (w *env) begin(a *linking.Accounts, uid, login string) linking.Answer {
	w.t.Helper()
	consent, err := a.Start(w.t.Context(), uid, nil, "/settings")
	if err != nil {
		w.t.Fatal(err)
	}
	state, code, err := w.oauth.Consent(consent.URL, login)
	if err != nil {
		w.t.Fatal(err)
	}
	return linking.Answer{State: state, Code: code, Browser: consent.Browser}
}

func (w *env) link(a *linking.Accounts, uid, login string) {
	w.t.Helper()
	gotUID, returnTo, err := a.Callback(w.t.Context(), w.begin(a, uid, login))
	if got := [2]string{gotUID, returnTo}; err != nil || got != [2]string{uid, "/settings"} {
		w.t.Fatalf("the callback is for %q (%v), want %q and /settings", got, err, uid)
	}
}

// client returns a client of the account that the user has linked at present.
func (w *env) client(a *linking.Accounts, uid string) (*http.Client, error) {
	in, err := a.Place(w.t.Context(), uid, nil)
	if err != nil {
		return nil, err
	}
	return a.Client(w.t.Context(), uid, in)
}

// whose asks GitHub for the owner of the user's account.
func (w *env) whose(a *linking.Accounts, uid string) (login string, err error) {
	c, err := w.client(a, uid)
	if err != nil {
		return "", err
	}
	return w.asks(c)
}

func (w *env) asks(c *http.Client) (login string, err error) {
	resp, err := c.Get(w.url + "/user")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var user struct{ Login string }
	err = json.NewDecoder(resp.Body).Decode(&user)
	return user.Login, err
}

func (w *env) is(a *linking.Accounts, uid, want string) {
	w.t.Helper()
	if got, err := w.whose(a, uid); got != want || err != nil {
		w.t.Errorf("%s acts as %q (%v); want %q", uid, got, err, want)
	}
}

func (w *env) status(uid string) string {
	w.t.Helper()
	list, err := w.instance().List(w.t.Context(), uid)
	if err != nil || len(list) > 1 {
		w.t.Fatalf("%+v, %v", list, err)
	}
	for _, c := range list {
		return c.Status
	}
	return "none"
}

// expect checks an error, and that it contains no secret.
func (w *env) expect(err error, class fault.Class, code fault.Code) {
	w.t.Helper()
	if !fault.Is(err, class, code) {
		w.t.Fatalf("got %v, want %s %s", err, class, code)
	}
	for _, secret := range []string{"ghu_", "ghr_", clientSecret} {
		if strings.Contains(err.Error(), secret) {
			w.t.Errorf("the error tells a secret: %v", err)
		}
	}
}
