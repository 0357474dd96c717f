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

	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/testkit/await"
)

// grant is the consent that an access token belongs to.
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
	action, fields := userForm(shown(t, page))
	if fields == nil {
		t.Fatalf("the consent page has no form for %s", User)
	}
	scopes := strings.Fields(fields.Get("scope"))
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return slices.Contains(without, s) })
	fields.Set("scope", strings.Join(scopes, " "))
	back := sent(t, e.URL+action, fields)
	if !strings.HasPrefix(back.String(), RedirectURL+"?") {
		t.Fatalf("the consent page leads to %v", back)
	}
	return back.Query().Get("state"), back.Query().Get("code")
}

// ConsentGitHub presses the button of [GitHubUser] on the consent page of the emulator at base, and returns the
// parameters of the redirect.
func ConsentGitHub(t testing.TB, base, page string) (state, code string) {
	t.Helper()
	fields := inputs(shown(t, page))
	fields.Set("login", GitHubUser)
	back := sent(t, base+"/login/oauth/callback", fields)
	return back.Query().Get("state"), back.Query().Get("code")
}

// browser is a client that does not follow redirects.
var browser = &http.Client{Timeout: await.Most,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// shown returns the text of a consent page.
func shown(t testing.TB, page string) string {
	t.Helper()
	res, err := browser.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the consent page has status %d: %v", res.StatusCode, err)
	}
	return string(text)
}

// sent sends the form of a consent page, and returns the target of the redirect.
func sent(t testing.TB, action string, fields url.Values) *url.URL {
	t.Helper()
	res, err := browser.PostForm(action, fields)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		t.Fatalf("the consent page has status %d: %v", res.StatusCode, err)
	}
	return back
}

// userForm matches the form of User's button. The emulator has its own user in addition to the seed's.
func userForm(page string) (action string, fields url.Values) {
	for _, form := range formTag.FindAllStringSubmatch(page, -1) {
		fields := inputs(form[2])
		if fields.Get("email") == User {
			return html.UnescapeString(form[1]), fields
		}
	}
	return "", nil
}

// inputs returns the fields of a form.
func inputs(form string) url.Values {
	fields := url.Values{}
	for _, input := range inputTag.FindAllStringSubmatch(form, -1) {
		fields.Set(html.UnescapeString(input[1]), html.UnescapeString(input[2]))
	}
	return fields
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
