package google_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// provider is an OAuth 2 server with an API: form posts, PKCE, single-use codes, rotation, revocation and scopes
// according to RFC 6749, 7636 and 7009, and errors in Google's format.
type provider struct {
	t      *testing.T
	srv    *httptest.Server
	issuer *issuer.Issuer
	now    func() time.Time

	mu       sync.Mutex
	serial   int
	codes    fakeoauth.Codes[grant]
	refresh  map[string]*grant // valid refresh tokens
	access   map[string]access // valid access tokens
	calls    map[string]int    // by kind of request: "authorization_code", "refresh_token", "revoke", "api"
	seen     map[string]bool   // every secret that was issued
	rotating bool
	status   int    // if set, the status that the token endpoint returns
	asks     string // its Retry-After with that status
	revokes  int    // if set, the status that the revocation endpoint returns
	quiet    bool
	hold     func() // if set, the token endpoint waits for it
}

type grant struct {
	account, redirect string
	scopes            []string
}

type access struct {
	account string
	scopes  []string
	until   time.Time
}

func newProvider(t *testing.T, now func() time.Time) *provider {
	p := &provider{t: t, now: now, refresh: map[string]*grant{}, access: map[string]access{},
		calls: map[string]int{}, seen: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", p.revoke)
	mux.HandleFunc("/api", p.api)
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
	})
	p.srv = httptest.NewServer(mux)
	t.Cleanup(p.srv.Close)
	key, err := issuer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if p.issuer, err = issuer.New(p.srv.URL, key, now); err != nil {
		t.Fatal(err)
	}
	return p
}

// consent plays the user on Google's page: they choose an account, untick some scopes, and consent. It returns the
// parameters of the callback.
func (p *provider) consent(address, account string, untick ...string) (state, code string) {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": clientID, "redirect_uri": redirectURL, "code_challenge_method": "S256",
		"access_type": "offline", "prompt": "consent", "include_granted_scopes": "true",
	} {
		if q.Get(name) != want {
			p.t.Errorf("the consent address has %s=%q, want %q", name, q.Get(name), want)
		}
	}
	scopes := slices.DeleteFunc(strings.Fields(q.Get("scope")),
		func(s string) bool { return slices.Contains(untick, s) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.refresh { // include_granted_scopes
		if g.account == account {
			scopes = append(scopes, g.scopes...)
		}
	}
	slices.Sort(scopes)
	code = p.codes.Give(grant{account: account, redirect: q.Get("redirect_uri"), scopes: slices.Compact(scopes)},
		q.Get("code_challenge"), p.now())
	p.seen[code] = true
	return q.Get("state"), code
}

func (p *provider) secret(kind string) string {
	p.serial++
	s := fmt.Sprintf("%s-secret-%d", kind, p.serial)
	p.seen[s] = true
	return s
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	hold := p.hold
	p.mu.Unlock()
	if hold != nil {
		hold()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := r.PostFormValue("grant_type")
	p.calls[kind]++
	if p.status != 0 {
		w.Header().Set("Retry-After", p.asks)
		http.Error(w, "<html>the refresh token was "+r.PostFormValue("refresh_token")+"</html>", p.status)
		return
	}
	if r.Header.Get("Authorization") != "" || r.PostFormValue("client_id") != clientID ||
		r.PostFormValue("client_secret") != clientSecret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if kind == "authorization_code" {
		p.trade(w, r)
		return
	}
	g := p.refresh[r.PostFormValue("refresh_token")]
	if kind != "refresh_token" || g == nil {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	answer := p.accessFor(*g)
	if p.rotating {
		delete(p.refresh, r.PostFormValue("refresh_token"))
		next := p.secret("refresh")
		p.refresh[next] = g
		answer["refresh_token"] = next
	}
	reply(w, answer)
}

func (p *provider) trade(w http.ResponseWriter, r *http.Request) {
	g, ok := p.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), p.now())
	if !ok || r.PostFormValue("redirect_uri") != g.redirect {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	answer := p.accessFor(g)
	if !p.quiet {
		refresh := p.secret("refresh")
		p.refresh[refresh] = &g
		answer["refresh_token"] = refresh
	}
	id, err := p.issuer.Token(g.account, g.account, clientID, time.Hour)
	if err != nil {
		p.t.Error(err)
	}
	answer["id_token"] = id
	reply(w, answer)
}

func (p *provider) accessFor(g grant) map[string]any {
	value := p.secret("access")
	p.access[value] = access{account: g.account, scopes: g.scopes, until: p.now().Add(time.Hour)}
	return map[string]any{"access_token": value, "token_type": "Bearer", "expires_in": 3600,
		"scope": strings.Join(g.scopes, " ")}
}

func (p *provider) revoke(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls["revoke"]++
	switch {
	case p.revokes != 0:
		http.Error(w, "no", p.revokes)
	case p.refresh[r.PostFormValue("token")] == nil:
		refuse(w, http.StatusBadRequest, "invalid_token")
	default:
		delete(p.refresh, r.PostFormValue("token"))
	}
}

// api answers with the account of the request's token and with the request's body.
func (p *provider) api(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls["api"]++
	a, ok := p.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok || !p.now().Before(a.until) {
		refuse(w, http.StatusUnauthorized, "UNAUTHENTICATED")
		return
	}
	body := make([]byte, r.ContentLength+1)
	n, _ := r.Body.Read(body)
	reply(w, map[string]any{"account": a.account, "body": string(body[:n])})
}

// forgetAccess makes the API refuse every access token, as after a password change.
func (p *provider) forgetAccess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.access)
}

// forgetConsent revokes what the users have granted, as in Google's settings.
func (p *provider) forgetConsent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.refresh)
	clear(p.access)
}

func (p *provider) count(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[kind]
}

func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": code, "error_description": "as said"})
}
