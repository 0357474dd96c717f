package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// begin starts to link an account of ana's, and returns the URL of Google's consent and the cookie.
func (w linked) begin() (address string, cookie *http.Cookie) {
	w.t.Helper()
	a := w.call("POST", "/api/agent/connections/google", `{}`)
	var consent struct{ URL string }
	if err := json.Unmarshal(a.Body, &consent); err != nil {
		w.t.Fatalf("%s: %v", a.Body, err)
	}
	set, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
	if err != nil {
		w.t.Fatal(err)
	}
	return consent.URL, set
}

// comeBack is a browser, or a client that poses as one, after Google's redirect.
func (w linked) comeBack(address, account string, header http.Header) (int, string) {
	w.t.Helper()
	state, code, err := w.OAuth.Consent(address, testkit.Address(account))
	if err != nil {
		w.t.Fatal(err)
	}
	q := url.Values{"state": {state}, "code": {code}}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet,
		w.Base+"/api/agent/connections/google/callback?"+q.Encode(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct {
		Error struct{ Code, Field, Message string }
	}
	_ = json.NewDecoder(res.Body).Decode(&body) // a redirect has no body
	return res.StatusCode, body.Error.Field + ": " + body.Error.Message
}

func (w linked) account() string {
	w.t.Helper()
	var list struct{ Connections []struct{ Email string } }
	if a := w.call("GET", "/api/agent/connections", ""); json.Unmarshal(a.Body, &list) != nil ||
		len(list.Connections) > 1 {
		w.t.Fatalf("%s", a.Body)
	}
	for _, c := range list.Connections {
		return c.Email
	}
	return ""
}

// TestConsentInOtherBrowser makes another user's browser finish ana's consent. It would link that user's account to
// her, so it is refused, whatever the browser sends.
func TestConsentInOtherBrowser(t *testing.T) {
	w := newLinked(t)
	for _, agent := range []string{
		"Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "Opera/9.80 (J2ME/MIDP; Opera Mini/5.1; U; en) Presto/2.8",
		"Lynx/2.9.2 libwww-FM/2.14", "w3m/0.5.3", "curl/8.1", "",
	} {
		address, cookie := w.begin()
		for name, header := range map[string]http.Header{"no cookie": {"User-Agent": {agent}},
			"another's cookie": {"User-Agent": {agent}, "Cookie": {cookie.Name + "=" + strings.Repeat("B", 43)}}} {
			if status, said := w.comeBack(address, "mallory", header); status != http.StatusBadRequest ||
				!strings.HasPrefix(said, "state: ") {
				t.Errorf("%q with %s: %d %s", agent, name, status, said)
			}
		}
	}
	address, cookie := w.begin()
	if _, said := w.comeBack(address, work, http.Header{}); !strings.Contains(said, "in the browser in which") {
		t.Errorf("a program is told %q", said)
	}
	if status, said := w.comeBack(address, work,
		http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}); status != http.StatusSeeOther ||
		w.account() != testkit.Address(work) {
		t.Errorf("the browser itself: %d %s, linked is %q", status, said, w.account())
	}
}

// TestConsentCookie checks that the cookie's name binds it to the host over TLS, where browsers check that.
func TestConsentCookie(t *testing.T) {
	w := newLinked(t)
	if _, c := w.begin(); c.Name != "countersign_consent" || c.Secure || c.Path != "/" || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode {
		t.Errorf("on loopback: %v", c)
	}
	w.App.API.PublicURL = "https://agent.example.com"
	address, c := w.begin()
	if c.Name != "__Host-countersign_consent" || !c.Secure || c.Path != "/" || c.Domain != "" || !c.HttpOnly ||
		c.SameSite != http.SameSiteLaxMode {
		t.Errorf("over TLS: %v", c)
	}
	if status, said := w.comeBack(address, work,
		http.Header{"Cookie": {"countersign_consent=" + c.Value}}); status != http.StatusBadRequest {
		t.Errorf("under the name that any subdomain may set: %d %s", status, said)
	}
	if status, said := w.comeBack(address, work,
		http.Header{"Cookie": {c.Name + "=" + c.Value}}); status != http.StatusSeeOther {
		t.Errorf("under its own name: %d %s", status, said)
	}
}

// TestConsentOfDisabledUser checks that a disabled user's consent is dropped, also if fewer scopes were granted than
// requested.
func TestConsentOfDisabledUser(t *testing.T) {
	for name, scopes := range map[string][]string{"all": testkit.Scopes, "less": testkit.Scopes[:1]} {
		t.Run(name, func(t *testing.T) {
			w := newLinked(t)
			w.SetScopes(work, scopes...)
			address, cookie := w.begin()
			if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", true); err != nil {
				t.Fatal(err)
			}
			if status, said := w.comeBack(address, work,
				http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}}); status != http.StatusUnauthorized {
				t.Errorf("%d %s; want status %v", status, said, http.StatusUnauthorized)
			}
			if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", false); err != nil {
				t.Fatal(err)
			}
			if got := w.account(); got != "" {
				t.Errorf("%s stays linked", got)
			}
		})
	}
}

// TestConsentDeclined checks that a browser returns to its page after a refusal, and that other clients get the error.
func TestConsentDeclined(t *testing.T) {
	w := newLinked(t)
	back := func(accept string) *http.Response {
		t.Helper()
		a := w.call("POST", "/api/agent/connections/google", `{"returnTo":"/#/accounts"}`)
		var consent struct{ URL string }
		if err := json.Unmarshal(a.Body, &consent); err != nil {
			t.Fatalf("%s: %v", a.Body, err)
		}
		set, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
		if err != nil {
			t.Fatal(err)
		}
		at, err := url.Parse(consent.URL)
		if err != nil {
			t.Fatal(err)
		}
		q := url.Values{"state": {at.Query().Get("state")}, "error": {"access_denied"}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			w.Base+"/api/agent/connections/google/callback?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: set.Name, Value: set.Value})
		req.Header.Set("Accept", accept)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	if res := back(browser); res.StatusCode != http.StatusSeeOther ||
		res.Header.Get("Location") != "/?unlinked=google&why=forbidden#/accounts" {
		t.Errorf("a browser: %d %s", res.StatusCode, res.Header.Get("Location"))
	}
	for _, accept := range []string{"", "*/*", "application/json"} {
		if res := back(accept); res.StatusCode != http.StatusForbidden ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%q: %d %s; want res.StatusCode %v, res.Header.Get(\"Content-Type\") that begins with "+
				"“application/json”",
				accept, res.StatusCode, res.Header.Get("Content-Type"), http.StatusForbidden)
		}
	}
	if w.account() != testkit.Address(home) {
		t.Errorf("%s is linked", w.account())
	}
}
