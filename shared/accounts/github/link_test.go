package github_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestLinkAndUse(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	if _, err := w.whose(a, "u1"); !fault.Is(err, fault.Auth, fault.CodeReauth) ||
		!strings.Contains(err.Error(),
			"No GitHub account is linked. Please link one first. Open Linked accounts in the console.") {
		t.Fatalf("without a link: %v", err)
	}
	w.link(a, "u1", "octo-cat")
	w.is(a, "u1", "octo-cat")
	list, err := a.List(t.Context(), "u1")
	want := []linking.Connection{{Provider: "github", Login: "octo-cat", Status: "linked", Scopes: []string{}}}
	if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(linking.Connection{}, "LinkedAt")); err != nil || diff != "" {
		t.Errorf("List: %v, and the list differs (-want +got):\n%s", err, diff)
	}
	in, err := a.Place(t.Context(), "u1", nil)
	if diff := cmp.Diff(tool.Place{Label: "As", Name: "octo-cat", ID: in.ID}, in); err != nil || diff != "" {
		t.Errorf("Place: %v, and the place differs (-want +got):\n%s", err, diff)
	}
	if in.ID == "" {
		t.Error("the place has no ID")
	}
	w.expect(func() error { _, err := w.whose(a, "u2"); return err }(), fault.Auth, fault.CodeReauth)
}

// TestLinkBesideGoogle links both accounts for one user. Neither link changes the other, and a state of one is not
// valid for the other.
func TestLinkBesideGoogle(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	b, err := google.New(google.Config{ClientID: "c", ClientSecret: "s", RedirectURL: redirectURL,
		Scopes: []string{"x"}, AuthURL: w.url + "/auth", TokenURL: w.url + "/token", Now: w.now}, w.store, w.cipher)
	if err != nil {
		t.Fatal(err)
	}
	w.link(a, "u1", "octo-cat")
	if list, err := b.List(t.Context(), "u1"); err != nil || len(list) != 0 {
		t.Errorf("Google has %+v (%v)", list, err)
	}
	if _, err := b.Unlink(t.Context(), "u1"); err != nil {
		t.Fatal(err)
	}
	w.is(a, "u1", "octo-cat")
	ans := w.begin(a, "u1", "octo-cat")
	_, _, err = b.Callback(t.Context(), ans)
	w.expect(err, fault.Validation, "invalid")
	if _, _, err := a.Callback(t.Context(), ans); err != nil {
		t.Errorf("Google's callback has used the state: %v", err)
	}
	for range 5 { // the limit of begun consents for each user and provider
		if _, err := b.Start(t.Context(), "u1", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	ans = w.begin(a, "u1", "octo-cat")
	for range 5 {
		if _, err := b.Start(t.Context(), "u1", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.Callback(t.Context(), ans); err != nil {
		t.Errorf("Google's consents have taken the place: %v", err)
	}
}

func TestPlaceOfAnotherAccount(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.link(a, "u1", "octo-cat")
	first, err := a.Place(t.Context(), "u1", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.link(a, "u1", "octo-cat")
	if again, err := a.Place(t.Context(), "u1", nil); err != nil || again != first {
		t.Errorf("the same account is %+v (%v), and was %+v", again, err, first)
	}
	consent, err := a.Start(t.Context(), "u1", nil, "")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(consent.URL)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"login", "code_challenge_method", "scope"} {
		got[name] = u.Query().Get(name)
	}
	asks := map[string]string{"login": "octo-cat", "code_challenge_method": "S256", "scope": ""}
	if diff := cmp.Diff(asks, got); diff != "" {
		t.Errorf("the parameters of %s differ (-want +got):\n%s", u, diff)
	}
	w.link(a, "u1", "mona")
	_, err = a.Client(t.Context(), "u1", first)
	w.expect(err, fault.Policy, fault.CodeStaleView)
	w.is(a, "u1", "mona")
}

func TestConsentsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *env, ans *linking.Answer)
		class fault.Class
		code  fault.Code
	}{
		"denied": {func(_ *env, ans *linking.Answer) { ans.Code, ans.Error = "", "access_denied" }, fault.Auth,
			fault.CodeForbidden},
		"invented code": {func(_ *env, ans *linking.Answer) { ans.Code = "0123456789abcdef" }, fault.Validation,
			"invalid"},
		"another's code": {func(w *env, ans *linking.Answer) {
			ans.Code = w.begin(w.instance(), "u2", "mona").Code
		}, fault.Validation, "invalid"},
		"another browser": {func(_ *env, ans *linking.Answer) { ans.Browser = strings.Repeat("B", 43) },
			fault.Validation, "invalid"},
		"another's state": {func(w *env, ans *linking.Answer) {
			ans.State = w.begin(w.instance(), "u2", "mona").State
		}, fault.Validation, "invalid"},
		"too late": {func(w *env, _ *linking.Answer) { w.pass(11 * time.Minute) }, fault.Validation, "invalid"},
		"no GitHub": {func(w *env, _ *linking.Answer) { w.answers(http.StatusBadGateway, "<html>") }, fault.Tool,
			"token_endpoint"},
		"another secret": {func(w *env, _ *linking.Answer) {
			w.answers(http.StatusOK, "error=incorrect_client_credentials&error_description=x")
		}, fault.Tool, "token_endpoint"},
		"nobody's token": {func(w *env, _ *linking.Answer) {
			w.answers(http.StatusOK, "access_token=ghu_invented&token_type=bearer")
		}, fault.Tool, "token_endpoint"},
		"the store": {func(w *env, _ *linking.Answer) { w.store.Set(faulty.Down) }, fault.Tool,
			fault.CodeStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := w.instance()
			ans := w.begin(a, "u1", "octo-cat")
			c.spoil(w, &ans)
			_, _, err := a.Callback(t.Context(), ans)
			w.expect(err, c.class, c.code)
			w.store.Set()
			if got := w.status("u1"); got != "none" {
				t.Errorf("the link is %s", got)
			}
		})
	}
}

// answers makes the token endpoint answer all requests with a query and do nothing.
func (w *env) answers(status int, body string) {
	w.around(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(body))
		})
	})
}

// TestTokenForms lets GitHub answer in JSON too.
func TestTokenForms(t *testing.T) {
	w := newEnv(t)
	w.around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			r.Header.Set("Accept", "application/json")
			next.ServeHTTP(rw, r)
		})
	})
	a := w.instance()
	ans := w.begin(a, "u1", "octo-cat")
	ans.Code = "0123456789abcdef"
	_, _, err := a.Callback(t.Context(), ans)
	w.expect(err, fault.Validation, "invalid")
	w.link(a, "u1", "octo-cat")
	w.pass(9 * time.Hour)
	w.is(a, "u1", "octo-cat")
	if n := w.count("POST " + tokenPath); n != 3 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
}

// TestStoredTokensEncrypted reads the whole store during a consent and after a renewal.
func TestStoredTokensEncrypted(t *testing.T) {
	w := newEnv(t)
	var seen strings.Builder
	w.store.Set(faulty.Commits(faulty.Before(func(c *faulty.Call) {
		for _, w := range c.Writes {
			seen.WriteString(w.Doc.Path + "\n" + string(w.Doc.Data) + "\n")
		}
	})))
	a := w.instance()
	w.link(a, "u1", "octo-cat")
	w.pass(9 * time.Hour)
	w.is(a, "u1", "octo-cat")
	if all := seen.String(); strings.Contains(all, "ghu_") || strings.Contains(all, "ghr_") ||
		!strings.Contains(all, "connections/github_u1") || !strings.Contains(all, "accessUntil") {
		t.Errorf("stored was:\n%s", all)
	}
}

// TestTokensOfOtherUser puts another user's tokens into a user's document, and exchanges the user's own.
func TestTokensOfOtherUser(t *testing.T) {
	w := newEnv(t)
	a := w.instance()
	w.link(a, "victim", "octo-cat")
	w.link(a, "thief", "mona")
	docs, err := w.store.Get(t.Context(), "connections/github_victim", "connections/github_thief")
	if err != nil {
		t.Fatal(err)
	}
	whole := string(docs[0].Data)
	for name, data := range map[string]string{"as it is": whole,
		"made out to the thief": strings.ReplaceAll(whole, `"uid":"victim"`, `"uid":"thief"`)} {
		w.overwrite(docs[1].Path, data)
		if _, err := w.whose(w.instance(), "thief"); err == nil {
			t.Errorf("%s: the thief has a client", name)
		}
	}
}

func TestUnlink(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(*env)
		revoked bool
	}{
		"GitHub agrees":           {func(*env) {}, true},
		"the access token ended":  {func(w *env) { w.pass(9 * time.Hour) }, true},
		"another instance has it": {func(w *env) { w.pass(9 * time.Hour); w.is(w.instance(), "u1", "octo-cat") }, true},
		"taken back before":       {func(w *env) { w.oauth.RevokeAll("octo-cat") }, false},
		"the key is lost": {func(w *env) {
			other, err := tokenkey.Local(w.t.TempDir())
			if err != nil {
				w.t.Fatal(err)
			}
			w.cipher = other
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			before := w.instance()
			w.link(before, "u1", "octo-cat")
			used, err := w.client(before, "u1")
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(w)
			a := w.instance()
			got, err := a.Unlink(t.Context(), "u1")
			if want := (linking.Unlinked{Existed: true, Revoked: c.revoked}); err != nil || got != want {
				t.Errorf("Unlink = %+v, %v; want %+v", got, err, want)
			}
			if got := w.status("u1"); got != "none" {
				t.Errorf("the link is %s", got)
			}
			if _, err := w.asks(used); err == nil && c.revoked {
				t.Error("the access token still works")
			}
			if again, err := a.Unlink(t.Context(), "u1"); err != nil || again.Existed {
				t.Errorf("a second time: %+v (%v)", again, err)
			}
		})
	}
}

func (w *env) overwrite(path, data string) {
	w.t.Helper()
	docs, err := w.store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Commit(w.t.Context(), update(docs[0], data)); err != nil {
		w.t.Fatal(err)
	}
}

func TestSettingsRefused(t *testing.T) {
	w := newEnv(t)
	good := github.Config{ClientID: clientID, RedirectURL: redirectURL}
	for name, change := range map[string]func(*github.Config){
		"no client":       func(c *github.Config) { c.ClientID = "" },
		"no callback":     func(c *github.Config) { c.RedirectURL = "" },
		"pages in clear":  func(c *github.Config) { c.URL = "http://github.example" },
		"the API's clear": func(c *github.Config) { c.APIURL = "http://api.github.example" },
	} {
		cfg := good
		change(&cfg)
		if _, err := github.New(cfg, w.store, w.cipher); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	if a, err := github.New(good, w.store, w.cipher); err != nil ||
		a.Provider().Settings != "https://github.com/settings/apps/authorizations" {
		t.Errorf("the good settings: %v", err)
	}
}
