package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

type connections struct {
	Connections []struct{ Provider, Email, Status string }
}

func (u *served) linked() string {
	u.t.Helper()
	var c connections
	u.call(http.MethodGet, "/api/agent/connections", nil, &c)
	for _, l := range c.Connections {
		if l.Provider == "google" {
			return l.Email + " " + l.Status
		}
	}
	return ""
}

// TestLinkAtSignIn expects a linked account after sign-in. Cards show it, the user can unlink it like any other,
// and it is not used afterwards.
func TestLinkAtSignIn(t *testing.T) {
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

func TestConsentStrict(t *testing.T) {
	s := startTestServer(t)
	// RFC 7636, appendix B
	const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	good := url.Values{"client_id": {localClient}, "redirect_uri": {testBase + callbackPath}, "response_type": {"code"},
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
