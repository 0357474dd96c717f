package github_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// given returns an access token that the account's owner made on GitHub.
func (w *env) given(login string) string {
	w.t.Helper()
	a := w.instance()
	w.link(a, "whoever", login)
	c, err := w.client(a, "whoever")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.asks(c); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bearer
}

func (w *env) withToken(token string) *github.Accounts {
	w.t.Helper()
	a, err := github.WithToken(w.instance(), github.TokenConfig{UID: "owner", Token: token, APIURL: w.url,
		HTTPClient: &http.Client{Timeout: await.Most}})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// TestOwnTokenOfOneUser checks that the setting's token serves one user, and that the others use the accounts that
// they linked.
func TestOwnTokenOfOneUser(t *testing.T) {
	w := newEnv(t)
	a := w.withToken(w.given("octo-cat"))
	w.link(w.instance(), "u1", "mona")
	for uid, want := range map[string]string{"owner": "octo-cat", "u1": "mona"} {
		in, err := a.Place(t.Context(), uid, nil)
		if diff := cmp.Diff(tool.Place{Label: "As", Name: want, ID: in.ID}, in); err != nil || diff != "" {
			t.Fatalf("Place of %s: %v, and the place differs (-want +got):\n%s", uid, err, diff)
		}
		if in.ID == "" {
			t.Fatalf("the place of %s has no ID", uid)
		}
		c, err := a.Client(t.Context(), uid, in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.asks(c); got != want || err != nil {
			t.Errorf("%s acts as %q (%v)", uid, got, err)
		}
		_, err = a.Client(t.Context(), uid, tool.Place{Label: "As", Name: "eve", ID: "x"})
		w.expect(err, fault.Policy, fault.CodeStaleView)
	}
	_, err := a.Place(t.Context(), "u2", nil)
	w.expect(err, fault.Auth, fault.CodeReauth)
	if len(a.Reads("owner")) != 0 || len(a.Reads("u1")) != 1 {
		t.Errorf("it reads %v and %v", a.Reads("owner"), a.Reads("u1"))
	}
}

// TestOwnTokenWithoutApp checks that errors mention no link if users cannot link an account.
func TestOwnTokenWithoutApp(t *testing.T) {
	w := newEnv(t)
	a, err := github.WithToken(nil, github.TokenConfig{UID: "owner", Token: w.given("octo-cat"), APIURL: w.url})
	if err != nil {
		t.Fatal(err)
	}
	if in, err := a.Place(t.Context(), "owner", nil); err != nil || in.Name != "octo-cat" {
		t.Errorf("its user is in %+v (%v)", in, err)
	}
	_, err = a.Place(t.Context(), "u1", nil)
	w.expect(err, fault.Auth, fault.CodeForbidden)
	if strings.Contains(err.Error(), "/connections/") || !strings.Contains(err.Error(), "GITHUB_CLIENT_ID") {
		t.Errorf("it says %v", err)
	}
	_, err = a.Client(t.Context(), "u1", tool.Place{})
	w.expect(err, fault.Auth, fault.CodeForbidden)
	if len(a.Reads("u1")) != 0 {
		t.Errorf("it reads %v", a.Reads("u1"))
	}
}

// TestOwnTokenRefused checks that the error says what to do if GitHub refuses the token, at the start and later.
func TestOwnTokenRefused(t *testing.T) {
	w := newEnv(t)
	_, err := w.withToken("ghp_invented").Place(t.Context(), "owner", nil)
	w.expect(err, fault.Auth, fault.CodeReauth)
	if !strings.Contains(err.Error(), "GITHUB_TOKEN") || strings.Contains(err.Error(), "ghp_") {
		t.Errorf("it says %v", err)
	}
	a := w.withToken(w.given("octo-cat"))
	in, err := a.Place(t.Context(), "owner", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Client(t.Context(), "owner", in)
	if err != nil {
		t.Fatal(err)
	}
	w.oauth.RevokeAll("octo-cat")
	_, err = w.asks(c)
	w.expect(err, fault.Auth, fault.CodeReauth)
}

func TestOwnTokenUnverified(t *testing.T) {
	w := newEnv(t)
	a, err := github.WithToken(w.instance(), github.TokenConfig{UID: "owner", Token: "ghp_x",
		APIURL: w.url + "/absent"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Place(t.Context(), "owner", nil); !tool.IsTransient(err) {
		t.Errorf("got %v", err)
	}
	for name, cfg := range map[string]github.TokenConfig{"nobody's": {Token: "x"}, "no token": {UID: "owner"},
		"in clear": {UID: "owner", Token: "x", APIURL: "http://api.example"}} {
		if _, err := github.WithToken(w.instance(), cfg); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
}
