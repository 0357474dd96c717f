package fakegoogle

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

func TestTokensOfAccounts(t *testing.T) {
	now := time.Now()
	a := NewOAuth(OAuthOptions{
		Client: fakeoauth.Client{Key: []byte("a key"), Now: func() time.Time { return now }},
		Scopes: func(email string) []string {
			if email == "revoked@example.com" {
				return nil
			}
			return []string{scopeSend}
		}})
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

// TestCodeRedeemedByClient exchanges codes as the client does that requested them, and with one parameter changed at a
// time.
func TestCodeRedeemedByClient(t *testing.T) {
	key, err := issuer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	iss, err := issuer.New("http://127.0.0.1/issuer", key, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	o := NewOAuth(OAuthOptions{Issuer: iss,
		Client: fakeoauth.Client{ClientID: "c", ClientSecret: "s", Key: []byte("a key")},
		Scopes: func(string) []string { return []string{scopeSend} }})
	mux := http.NewServeMux()
	o.Routes(mux, "/")
	// RFC 7636, appendix B
	asked := url.Values{"client_id": {"c"}, "redirect_uri": {"http://back"}, "response_type": {"code"}, "state": {"x"},
		"code_challenge_method": {"S256"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}}
	for name, want := range map[string]int{"": 200, "client_secret": 401, "redirect_uri": 400, "code": 400,
		"code_verifier": 400, "grant_type": 400} {
		state, code, err := o.Consent("/auth?"+asked.Encode(), "ana@example.com")
		if err != nil || state != "x" {
			t.Fatal(state, err)
		}
		form := url.Values{"client_id": {"c"}, "client_secret": {"s"}, "redirect_uri": {"http://back"}, "code": {code},
			"grant_type": {"authorization_code"}, "code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}}
		if name != "" {
			form.Set(name, form.Get(name)+"x")
		}
		r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != want {
			t.Errorf("another %q: %d %s", name, w.Code, w.Body)
		}
	}
}
