package github_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
)

// TestLinkOnEmulator links an account at another implementation, without refresh tokens, PKCE and revocation by an App.
func TestLinkOnEmulator(t *testing.T) {
	base := emulate.StartGitHub(t)
	w := newEnv(t)
	a, err := github.New(github.Config{ClientID: clientID, ClientSecret: clientSecret, RedirectURL: redirectURL,
		URL: base, APIURL: base, Now: w.now}, w.store, w.cipher)
	if err != nil {
		t.Fatal(err)
	}
	begin := func() linking.Answer {
		consent, err := a.Start(t.Context(), "u1", nil, "")
		if err != nil {
			t.Fatal(err)
		}
		state, code := emulate.ConsentGitHub(t, base, consent.URL)
		return linking.Answer{State: state, Code: code, Browser: consent.Browser}
	}
	invented := begin()
	invented.Code = "0123456789abcdef"
	_, _, err = a.Callback(t.Context(), invented)
	w.expect(err, fault.Validation, "invalid")
	if _, _, err := a.Callback(t.Context(), begin()); err != nil {
		t.Fatal(err)
	}
	w.pass(24 * time.Hour)
	c, err := w.client(a, "u1")
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Get(base + "/user")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var user struct{ Login string }
	if err := json.NewDecoder(res.Body).Decode(&user); err != nil || user.Login != emulate.GitHubUser {
		t.Errorf("it acts as %q (%v)", user.Login, err)
	}
	if got, err := a.Unlink(t.Context(), "u1"); err != nil || got != (linking.Unlinked{Existed: true}) {
		t.Errorf("Unlink = %+v, %v; want one that existed and was not revoked", got, err)
	}
}
