package issuer_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const (
	redirect = "http://127.0.0.1:8080/"
	verifier = "a-verifier-of-forty-three-characters-or-more-0123456789"
)

func signInServer(t *testing.T) (*httptest.Server, *issuer.Issuer) {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	key, err := issuer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	iss, err := issuer.New("http://"+srv.Listener.Addr().String()+"/dev/issuer", key, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	iss.ServeSignIn(issuer.Client{ID: "console", Redirects: []string{redirect}, SignedIn: func(uid, _ string) error {
		if uid == "<nobody>" {
			return errors.New("this is no user")
		}
		return nil
	}})
	srv.Config.Handler = iss
	srv.Start()
	t.Cleanup(srv.Close)
	return srv, iss
}

func question(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"client_id": {"console"}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"s1"},
		"nonce":          {"n1"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"uid": {"ana"}, "email": {"ana@example.com"}}
	for i := 0; i+1 < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return q
}

// post sends a form, and returns the target of the redirect.
func post(t *testing.T, address string, form url.Values) (int, *url.URL, map[string]any) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.PostForm(address, form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	to, err := url.Parse(res.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	_ = json.NewDecoder(res.Body).Decode(&body) // a page is not JSON
	return res.StatusCode, to, body
}

func TestCodeUse(t *testing.T) {
	_, iss := signInServer(t)
	redeem := func(changes ...string) (int, map[string]any) {
		status, to, _ := post(t, iss.URL()+"/authorize", question())
		if status != http.StatusSeeOther || to.Query().Get("state") != "s1" ||
			!strings.HasPrefix(to.String(), redirect+"?") {
			t.Fatalf("%d to %s", status, to)
		}
		form := url.Values{"grant_type": {"authorization_code"}, "client_id": {"console"}, "redirect_uri": {redirect},
			"code": {to.Query().Get("code")}, "code_verifier": {verifier}}
		for i := 0; i+1 < len(changes); i += 2 {
			form.Set(changes[i], changes[i+1])
		}
		status, _, body := post(t, iss.URL()+"/token", form)
		if again, _, _ := post(t, iss.URL()+"/token", form); again != http.StatusBadRequest {
			t.Errorf("a code was good twice: %d", again)
		}
		return status, body
	}
	status, body := redeem()
	if status != http.StatusOK {
		t.Fatalf("%d %v; want status %v", status, body, http.StatusOK)
	}
	provider, err := oidc.NewProvider(t.Context(), iss.URL())
	if err != nil {
		t.Fatal(err)
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: "console"}).Verify(t.Context(), body["id_token"].(string))
	if err != nil || token.Subject != "ana" || token.Nonce != "n1" {
		t.Errorf("%+v %v; want token.Subject “ana”, token.Nonce “n1”", token, err)
	}
	for _, wrong := range [][]string{{"code_verifier", "another"}, {"client_id", "another"},
		{"redirect_uri", "https://evil.example/"}, {"grant_type", "password"}, {"code", "x"}} {
		if status, _ := redeem(wrong...); status != http.StatusBadRequest {
			t.Errorf("%v: %d; want status %v", wrong, status, http.StatusBadRequest)
		}
	}
}

func TestTokenInFragment(t *testing.T) {
	_, iss := signInServer(t)
	status, to, _ := post(t, iss.URL()+"/authorize", question("response_type", "id_token"))
	fragment, err := url.ParseQuery(to.EscapedFragment())
	if status != http.StatusSeeOther || err != nil || fragment.Get("state") != "s1" ||
		strings.Count(fragment.Get("id_token"), ".") != 2 || to.RawQuery != "" {
		t.Errorf("%d to %s, %v", status, to, err)
	}
}

func TestRedirectsRefused(t *testing.T) {
	_, iss := signInServer(t)
	for name, changes := range map[string][]string{
		"another client": {"client_id", "x"}, "another address": {"redirect_uri", "https://evil.example/"},
		"a longer address": {"redirect_uri", redirect + "x"},
		"no challenge":     {"code_challenge", ""}, "a plain challenge": {"code_challenge_method", "plain"},
		"no nonce": {"nonce", ""}, "another type": {"response_type", "token"},
		"a refused user": {"uid", "<nobody>"},
	} {
		if status, to, _ := post(t, iss.URL()+"/authorize", question(changes...)); status != http.StatusBadRequest ||
			to.String() != "" {
			t.Errorf("%s: %d to %q", name, status, to)
		}
	}
}

// TestUsualEmail checks that each name has a different address. A name that is an address keeps it.
func TestUsualEmail(t *testing.T) {
	for uid, want := range map[string]string{"ana": "ana@example.com", "ken.o-2": "ken.o-2@example.com",
		"ken@corp.example": "ken@corp.example", "Ana": "_ana@example.com", "auth0|x:y": "auth0_124x_058y@example.com"} {
		if got := issuer.UsualEmail(uid); got != want {
			t.Errorf("%s: %s, want %s", uid, got, want)
		}
	}
	long := strings.Repeat("Ab|", 40)
	whose := map[string]string{}
	for _, uid := range []string{"a|b", "a:b", "a-b", "a_b", "a.b", "a b", "a@b", "ab", "aB", "AB", "a__b", "_ab",
		"_095b", "b_b", "ana", "Ana", "ana@example.com", "Ana@example.com", "ken@corp.example", "KEN@corp.example", "é",
		"e\u0301", "е", "e", "ı", "K", "k", "\u212a", long, long + "c", long[1:], "日本", "日木", "\xff"} {
		got := issuer.UsualEmail(uid)
		if !fakegoogle.ValidAddress(got) {
			t.Errorf("%q: %s is no address", uid, got)
		}
		if other, taken := whose[strings.ToLower(got)]; taken {
			t.Errorf("%q and %q have the address %s", uid, other, got)
		}
		whose[strings.ToLower(got)] = uid
	}
}
