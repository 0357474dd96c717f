package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

type connections struct {
	Connections []struct{ Email, Status string }
}

func (u *served) linked() string {
	u.t.Helper()
	var c connections
	u.call(http.MethodGet, "/api/agent/connections", nil, &c)
	if len(c.Connections) == 0 {
		return ""
	}
	return c.Connections[0].Email + " " + c.Connections[0].Status
}

// A user who signs in has a linked account: it is shown on the card, it can be unlinked like any other, and is then not
// used any more.
func TestASignInLinksTheLocalAccount(t *testing.T) {
	u := serve(t)
	if got := u.linked(); got != "ana@example.com linked" {
		t.Fatalf("linked is %q", got)
	}
	from := func(r runReply) (f string) {
		for _, field := range r.Approvals[0].Preview.Fields {
			if field.Label == "Calendar of" || field.Label == "From" || strings.Contains(field.Value, "@example.com") {
				f = field.Value
			}
		}
		return f
	}
	r := u.lunch(nil)
	if !strings.Contains(from(r), "ana@example.com") {
		t.Errorf("the card's account: %+v", r.Approvals[0].Preview.Fields)
	}
	var unlinked struct{ OK bool }
	u.call(http.MethodDelete, "/api/agent/connections/google", nil, &unlinked)
	if got := u.linked(); got != "" {
		t.Errorf("after unlinking: %q", got)
	}
	var refused struct {
		Approvals []any
		Actions   []struct{ Status, ErrorReason string }
	}
	u.call(http.MethodPost, "/api/agent/run", map[string]any{"prompt": "schedule lunch tomorrow at noon"}, &refused)
	if len(refused.Approvals) != 0 || len(refused.Actions) != 1 || refused.Actions[0].ErrorReason != "reauth_required" {
		t.Errorf("without an account: %+v", refused)
	}
	again := u.as("ana")
	if got := again.linked(); got != "ana@example.com linked" {
		t.Errorf("after another sign-in: %q", got)
	}
	var signedIn struct{ Token string }
	u.call(http.MethodPost, "/dev/token", map[string]string{"uid": "ana", "email": "ana.user@example.com"}, &signedIn)
	if got := again.linked(); got != "ana.user@example.com linked" {
		t.Errorf("after a sign-in with another address: %q", got)
	}
}

func TestTheLocalConsentIsStrict(t *testing.T) {
	s := startTestServer(t)
	c := s.consents
	now := time.Now()
	c.now = func() time.Time { return now }
	// RFC 7636, appendix B
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	for name, try := range map[string]struct {
		verifier string
		later    time.Duration
		ok       bool
	}{"in time": {verifier, 0, true}, "another verifier": {verifier + "x", 0, false},
		"late": {verifier, localCode, false}} {
		code := c.keep(consent{"ana@example.com", challenge, now.Add(localCode)})
		began := now
		now = now.Add(try.later)
		email, ok := c.take(code, try.verifier)
		if ok != try.ok || ok && email != "ana@example.com" {
			t.Errorf("%s: %q, %t", name, email, ok)
		}
		if _, ok := c.take(code, verifier); ok {
			t.Errorf("%s: the code is good twice", name)
		}
		now = began
	}
	access := c.sign(signed{"access", "ana@example.com", now.Add(localAccess).Unix()})
	refresh := c.sign(signed{"refresh", "ana@example.com", 0})
	if email, _, ok := c.account(access); !ok || email != "ana@example.com" {
		t.Errorf("the access token is %q's, %t", email, ok)
	}
	body, sum, _ := strings.Cut(access, ".")
	for _, forged := range []string{"", ".", body, body + ".", "x" + access,
		c.sign(signed{"access", "eve@example.com", now.Add(localAccess).Unix()})[:20] + "." + sum, refresh,
		c.sign(signed{"access", "ana@example.com", now.Unix()})} {
		if email, _, ok := c.account(forged); ok {
			t.Errorf("%q is taken for %q's", forged, email)
		}
	}
	good := url.Values{"client_id": {localClient}, "redirect_uri": {c.redirect}, "response_type": {"code"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "state": {"s"}}
	for name, want := range map[string]int{"": http.StatusOK, "client_id": http.StatusBadRequest,
		"redirect_uri": http.StatusBadRequest, "code_challenge_method": http.StatusBadRequest,
		"state": http.StatusBadRequest} {
		q := url.Values{}
		for k, v := range good {
			if q[k] = v; k == name {
				q.Set(k, v[0]+"x")
			}
			if k == name && name == "state" {
				q.Del(k)
			}
		}
		r := request(t, http.MethodGet, consentPath+"?"+q.Encode(), "")
		if code := answered(s, r); code != want {
			t.Errorf("another %q: %d", name, code)
		}
		r = request(t, http.MethodPost, consentPath, q.Encode()+"&account=ana@example.com")
		r.Header.Set("Origin", "https://evil.example")
		if code := answered(s, r); code != http.StatusForbidden {
			t.Errorf("a consent from another page: %d", code)
		}
	}
}

func request(t *testing.T, method, path, form string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(method, testBase+path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func answered(s *server, r *http.Request) int {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}
