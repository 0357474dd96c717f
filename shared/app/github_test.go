package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
)

const onGitHub = "/api/agent/connections/github"

// beginGitHub starts to link a GitHub account of the user's, and returns the page and the cookie.
func (w linked) beginGitHub(uid string) (page, cookie string) {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "POST", onGitHub, `{"returnTo":"/#/accounts"}`)
	var consent struct{ URL string }
	if err = errors.Join(err, json.Unmarshal(a.Body, &consent)); err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%v: %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	cookie, _, _ = strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return consent.URL, cookie
}

// agree is the user on GitHub's page.
func (w linked) agree(page, login string) url.Values {
	w.t.Helper()
	state, code, err := w.GitHubApp.Consent(page, login)
	if err != nil {
		w.t.Fatal(err)
	}
	return url.Values{"state": {state}, "code": {code}}
}

// back is a browser after GitHub's redirect.
func (w linked) back(q url.Values, cookie string) (status int, said string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.Base+onGitHub+"/callback?"+q.Encode(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct {
		Error struct{ Class, Field, Message string }
	}
	_ = json.NewDecoder(res.Body).Decode(&body) // a redirect has no body
	return res.StatusCode, body.Error.Class + " " + body.Error.Field + ": " + body.Error.Message
}

// logins returns the user's GitHub accounts, with their status unless it is linked.
func (w linked) logins(uid string) string {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "GET", "/api/agent/connections", "")
	var list struct {
		Connections []linking.Connection
		Providers   []string
	}
	if err = errors.Join(err, json.Unmarshal(a.Body, &list)); err != nil ||
		!slices.Equal(list.Providers, []string{"google", "github"}) {
		w.t.Fatalf("%v: %s; want list.Providers %v", err, a.Body, []string{"google", "github"})
	}
	all := ""
	for _, c := range list.Connections {
		if c.Provider == "github" {
			all += strings.TrimSuffix(c.Login+" "+c.Status, " linked")
		}
	}
	return all
}

// acts returns the account in which a user's calls act.
func (w linked) acts(uid string) (login string, err error) { return w.actsOn(w.App.API.GitHub, uid) }

func (w linked) actsOn(a *linking.Accounts, uid string) (login string, err error) {
	in, err := a.Place(w.t.Context(), uid, nil)
	if err != nil {
		return "", err
	}
	c, err := a.Client(w.t.Context(), uid, in)
	if err != nil {
		return "", err
	}
	res, err := c.Get(w.URL + "/api/v3/user")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var user struct{ Login string }
	return user.Login, json.NewDecoder(res.Body).Decode(&user)
}

// TestGitHubLink links and unlinks a GitHub account while a Google account stays linked.
func TestGitHubLink(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		if _, err := w.acts("ana"); !fault.Is(err, fault.Auth, fault.CodeReauth) ||
			!strings.Contains(err.Error(), "No GitHub account is linked.") {
			t.Errorf("without a link: %v", err)
		}
		page, cookie := w.beginGitHub("ana")
		if status, said := w.back(w.agree(page, "ana-codes"), cookie); status != http.StatusSeeOther {
			t.Fatalf("%d %s; want status %v", status, said, http.StatusSeeOther)
		}
		w.linkGitHub("ben", "ben-codes")
		for uid, want := range map[string]string{"ana": "ana-codes", "ben": "ben-codes"} {
			if got, err := w.acts(uid); got != want || err != nil || w.logins(uid) != want {
				t.Errorf("%s acts as %q (%v), and has linked %q", uid, got, err, w.logins(uid))
			}
		}
		w.linkGitHub("ana", "ana-works")
		if got, err := w.acts("ana"); got != "ana-works" || err != nil || w.logins("ana") != "ana-works" {
			t.Errorf("with another account she acts as %q (%v)", got, err)
		}
		for range 2 { // none is left the second time
			if a := w.call("DELETE", onGitHub, ""); a.HTTP != http.StatusOK ||
				!strings.Contains(string(a.Body), `"revoked":`) {
				t.Errorf("%d %s; want a.HTTP %v, a.Body with %q", a.HTTP, a.Body, http.StatusOK, `"revoked":`)
			}
		}
		if w.logins("ana") != "" || w.logins("ben") != "ben-codes" || w.account() != testkit.Address(home) {
			t.Errorf("left are %q, %q and %q", w.logins("ana"), w.logins("ben"), w.account())
		}
		if logs := w.Logs.String(); strings.Contains(logs, "ghu_") || strings.Contains(logs, "ghr_") {
			t.Error("a token is in the log")
		}
	})
}

// TestGitHubConsentOfOtherUser checks that nothing is linked with another user's state or browser, or after a refusal.
func TestGitHubConsentOfOtherUser(t *testing.T) {
	w := newLinked(t)
	page, cookie := w.beginGitHub("ana")
	mallory, hers := w.beginGitHub("mallory")
	google, _ := w.begin()
	state, code, err := w.OAuth.Consent(google, testkit.Address(work))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q      url.Values
		cookie string
		says   string
	}{
		"another's browser": {w.agree(page, "mallory"), hers, "ValidationError state"},
		"another's state":   {w.agree(mallory, "mallory"), cookie, "ValidationError state"},
		"Google's state":    {url.Values{"state": {state}, "code": {code}}, cookie, "ValidationError state"},
		"no cookie":         {w.agree(mallory, "mallory"), "", "ValidationError state"},
	} {
		if status, said := w.back(c.q, c.cookie); status != http.StatusBadRequest || !strings.HasPrefix(said, c.says) {
			t.Errorf("%s: %d %s; want status %v, said that begins with %q",
				name, status, said, http.StatusBadRequest, c.says)
		}
	}
	page, cookie = w.beginGitHub("ana")
	no := w.agree(page, "ana-codes")
	no.Del("code")
	no.Set("error", "access_denied")
	if status, said := w.back(no, cookie); status != http.StatusForbidden || !strings.HasPrefix(said, "AuthError") {
		t.Errorf("after a no: %d %s", status, said)
	}
	page, cookie = w.beginGitHub("ana")
	good := w.agree(page, "ana-codes")
	wrong := url.Values{"state": good["state"], "code": {"0123456789abcdef"}}
	if status, said := w.back(wrong, cookie); status != http.StatusBadRequest ||
		!strings.HasPrefix(said, "ValidationError code") {
		t.Errorf("a wrong code: %d %s", status, said)
	}
	if status, _ := w.back(good, cookie); status != http.StatusBadRequest {
		t.Errorf("a state is good twice: %d", status)
	}
	if got := w.logins("ana") + w.logins("mallory"); got != "" {
		t.Errorf("%q is linked", got)
	}
	if a := w.call("POST", onGitHub, `{"tools":["gmail_send"]}`); a.HTTP != http.StatusBadRequest {
		t.Errorf("tools of Google's: %d %s", a.HTTP, a.Body)
	}
}

// TestGitHubRenewalRace renews repeatedly, with separate caches. A refresh token is valid once, and using it ends the
// earlier access token.
func TestGitHubRenewalRace(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		w.linkGitHub("ana", "ana-codes")
		for range 3 {
			w.endAccess("ana")
			var wg sync.WaitGroup
			for range 2 {
				instance := w.instance()
				wg.Go(func() {
					if got, err := w.actsOn(instance, "ana"); got != "ana-codes" || err != nil {
						t.Errorf("acts as %q, %v", got, err)
					}
				})
			}
			wg.Wait()
		}
		if got := w.logins("ana"); got != "ana-codes" {
			t.Errorf("the link is %q", got)
		}
	})
}

// TestGitHubRelinkAfterRevocation has the user revoke the access at GitHub.
func TestGitHubRelinkAfterRevocation(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		w.linkGitHub("ana", "ana-codes")
		w.GitHubApp.RevokeAll("ana-codes")
		for range 2 {
			if _, err := w.acts("ana"); !fault.Is(err, fault.Auth, fault.CodeReauth) {
				t.Errorf("got %v; want error %v %v", err, fault.Auth, fault.CodeReauth)
			}
		}
		if got := w.logins("ana"); got != "ana-codes broken" {
			t.Errorf("listed as %q", got)
		}
		w.linkGitHub("ana", "ana-codes")
		if got, err := w.acts("ana"); got != "ana-codes" || err != nil {
			t.Errorf("linked again it is %q, %v", got, err)
		}
	})
}

// TestGitHubOffboarding checks that offboarding revokes the access and leaves nothing.
func TestGitHubOffboarding(t *testing.T) {
	w := newLinked(t)
	w.linkGitHub("ana", "ana-codes")
	page, cookie := w.beginGitHub("ana")
	late := w.agree(page, "ana-codes")
	got, err := w.App.Offboard().Delete(t.Context(), "ana")
	if err != nil || !got.Gone || got.GitHub != offboard.UnlinkedGitHub || got.Link != offboard.Forgotten {
		t.Fatalf("%+v, %v", got, err)
	}
	if status, said := w.back(late, cookie); status != http.StatusUnauthorized {
		t.Errorf("a consent that comes back afterwards: %d %s", status, said)
	}
	docs, err := w.App.Store.Get(t.Context(), "connections/github_ana")
	if err != nil || docs[0].Exists() {
		t.Errorf("the link is still there: %s (%v)", docs[0].Data, err)
	}
}

// TestGitHubWithoutApp checks the error, and that other accounts are still listed.
func TestGitHubWithoutApp(t *testing.T) {
	w := newLinked(t, "GITHUB_CLIENT_ID=", "GITHUB_CLIENT_SECRET=")
	for method, path := range map[string]string{"POST": onGitHub, "DELETE": onGitHub, "GET": onGitHub + "/callback"} {
		if a := w.call(method, path, `{}`); a.HTTP != http.StatusConflict {
			t.Errorf("%s: %d %s; want a.HTTP %v", method, a.HTTP, a.Body, http.StatusConflict)
		}
	}
	if a := w.call("GET", "/api/agent/connections", ""); !strings.Contains(string(a.Body), `"providers":["google"]`) {
		t.Errorf("a.Body is %s; want with %q", a.Body, `"providers":["google"]`)
	}
}

// endAccess expires the user's stored GitHub access token.
func (w linked) endAccess(uid string) {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), "connections/github_"+uid)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := accessUntil.ReplaceAll(docs[0].Data, []byte(`"accessUntil":"2020-01-01T00:00:00Z"`))
	if bytes.Equal(ended, docs[0].Data) {
		w.t.Fatal("the link has no access token")
	}
	_, err = w.App.Store.Commit(w.t.Context(), store.Update(docs[0].Path, docs[0].Version, nil, ended))
	if err != nil {
		w.t.Fatal(err)
	}
}

var accessUntil = regexp.MustCompile(`"accessUntil":"[^"]*"`)

// instance returns the accounts of another process on the same store.
func (w linked) instance() *linking.Accounts {
	w.t.Helper()
	cfg := w.App.Config
	key, err := tokenkey.Open(w.t.Context(), tokenkey.Config{Dir: cfg.DataDir})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := github.New(github.Config{ClientID: cfg.GitHubClientID, ClientSecret: cfg.GitHubClientSecret.Reveal(),
		URL: cfg.GitHubURL, APIURL: cfg.GitHubAPIURL, RedirectURL: w.Base + onGitHub + "/callback"}, w.App.Store, key)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}
