package fakegoogle

import (
	"strings"
	"testing"
	"time"
)

func TestCodesAndTokensOfAccounts(t *testing.T) {
	now := time.Now()
	a := NewOAuth(OAuthOptions{Key: []byte("a key"), Now: func() time.Time { return now },
		Scopes: func(email string) []string {
			if email == "revoked@example.com" {
				return nil
			}
			return []string{scopeSend}
		}})
	// RFC 7636, appendix B
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	for name, try := range map[string]struct {
		verifier, redirect string
		later              time.Duration
		ok                 bool
	}{"in time": {verifier, "r", 0, true}, "another verifier": {verifier + "x", "r", 0, false},
		"another redirect": {verifier, "s", 0, false}, "late": {verifier, "r", codeLifetime, false}} {
		code := a.keep(grant{"ana@example.com", challenge, "r", now.Add(codeLifetime)})
		began := now
		now = now.Add(try.later)
		email, ok := a.take(code, try.verifier, try.redirect)
		if ok != try.ok || ok && email != "ana@example.com" {
			t.Errorf("%s: %q, %t", name, email, ok)
		}
		if _, ok := a.take(code, verifier, "r"); ok {
			t.Errorf("%s: the code is good twice", name)
		}
		now = began
	}
	access, refresh := a.AccessToken("ana@example.com"), a.sign(signed{"refresh", "ana@example.com", 0})
	if email, _, ok := a.User(access); !ok || email != "ana@example.com" {
		t.Errorf("the access token is %q's, %t", email, ok)
	}
	body, sum, _ := strings.Cut(access, ".")
	for _, forged := range []string{"", ".", body, body + ".", "x" + access,
		a.AccessToken("eve@example.com")[:20] + "." + sum, refresh, a.AccessToken("revoked@example.com"),
		a.sign(signed{"access", "ana@example.com", now.Unix()})} {
		if email, _, ok := a.User(forged); ok {
			t.Errorf("%q is taken for %q's", forged, email)
		}
	}
}
