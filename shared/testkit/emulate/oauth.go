package emulate

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// grant is the grant behind an access token.
type grant struct {
	scopes  []string
	refresh string // the refresh token of the same consent
}

// token records the access tokens in the emulator's answers.
func (e *Emulator) token(w http.ResponseWriter, r *http.Request) {
	form, _ := url.ParseQuery(string(body(r))) // the emulator reports its own errors
	rec := e.ask(r)
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Scope   string `json:"scope"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err == nil && got.Access != "" {
		if got.Refresh == "" {
			got.Refresh = form.Get("refresh_token")
		}
		e.mu.Lock()
		e.grants[got.Access] = grant{scopes: strings.Fields(got.Scope), refresh: got.Refresh}
		e.mu.Unlock()
	}
	replay(w, rec)
}

// revoke also revokes the access tokens of the refresh token's consent.
func (e *Emulator) revoke(w http.ResponseWriter, r *http.Request) {
	form, _ := url.ParseQuery(string(body(r))) // as in token
	e.forward.ServeHTTP(w, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	for access, g := range e.grants {
		if t := form.Get("token"); t == g.refresh || t == access {
			delete(e.grants, access)
		}
	}
}

// RevokeAll revokes every consent, as the user can do at Google.
func (e *Emulator) RevokeAll(t testing.TB) {
	t.Helper()
	e.mu.Lock()
	all := map[string]bool{}
	for _, g := range e.grants {
		all[g.refresh] = true
	}
	e.mu.Unlock()
	for refresh := range all {
		res, err := http.PostForm(e.URL+"/oauth2/revoke", url.Values{"token": {refresh}})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("revoke: status %d", res.StatusCode)
		}
	}
}

// Forget makes the access tokens expire; the consents stay valid.
func (e *Emulator) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.grants)
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	inputTag = regexp.MustCompile(`<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

// Consent accepts the emulator's consent page for all scopes except those in without, and returns the parameters of
// the redirect to RedirectURL.
func (e *Emulator) Consent(t testing.TB, page string, without ...string) (state, code string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	action, fields := userForm(string(b))
	if res.StatusCode != http.StatusOK || fields == nil {
		t.Fatalf("the consent page has status %d and no form for %s", res.StatusCode, User)
	}
	scopes := strings.Fields(fields.Get("scope"))
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return slices.Contains(without, s) })
	fields.Set("scope", strings.Join(scopes, " "))
	sent, err := client.PostForm(e.URL+action, fields)
	if err != nil {
		t.Fatal(err)
	}
	defer sent.Body.Close()
	back, err := sent.Location()
	if err != nil || !strings.HasPrefix(back.String(), RedirectURL+"?") {
		t.Fatalf("the consent page leads to %v (status %d, %v)", back, sent.StatusCode, err)
	}
	return back.Query().Get("state"), back.Query().Get("code")
}

// userForm matches the form of User's button. The emulator has its own user in addition to the seed's.
func userForm(page string) (action string, fields url.Values) {
	for _, form := range formTag.FindAllStringSubmatch(page, -1) {
		fields := url.Values{}
		for _, input := range inputTag.FindAllStringSubmatch(form[2], -1) {
			fields.Set(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
		}
		if fields.Get("email") == User {
			return html.UnescapeString(form[1]), fields
		}
	}
	return "", nil
}

// Client returns a client of the user for the scopes, with its own consent.
func (e *Emulator) Client(t testing.TB, scopes ...string) *http.Client {
	t.Helper()
	cfg := oauth2.Config{
		ClientID: ClientID, ClientSecret: ClientSecret, RedirectURL: RedirectURL, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: e.URL + "/o/oauth2/v2/auth", TokenURL: e.URL + "/oauth2/token",
			AuthStyle: oauth2.AuthStyleInParams},
	}
	verifier := oauth2.GenerateVerifier()
	_, code := e.Consent(t, cfg.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)))
	got, err := cfg.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Client(context.WithoutCancel(t.Context()), got)
}
