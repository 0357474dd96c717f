package fakeoauth_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
)

// TestConsentPageAnswers posts the form of the page, and checks the target of the redirect.
func TestConsentPageAnswers(t *testing.T) {
	s := fakeoauth.New(fakeoauth.Client{ClientID: "c", Key: []byte("a key")}, fakeoauth.Page{Denied: "Denied."},
		func(account string) error {
			if account != "ana" {
				return errors.New("no account")
			}
			return nil
		})
	mux := http.NewServeMux()
	s.Authorize(mux, "/auth")
	for name, try := range map[string]struct {
		changes url.Values
		status  int
		back    string // the beginning of the redirect
	}{
		"agrees": {nil, http.StatusSeeOther, "http://back?code="},
		"refuses": {url.Values{"answer": {"no"}}, http.StatusSeeOther,
			"http://back?error=access_denied&error_description=Denied.&state=x"},
		"no account":              {url.Values{"account": {"eve"}}, http.StatusBadRequest, ""},
		"another client":          {url.Values{"client_id": {"d"}}, http.StatusBadRequest, ""},
		"another client, refused": {url.Values{"client_id": {"d"}, "answer": {"no"}}, http.StatusBadRequest, ""},
	} {
		form := url.Values{"client_id": {"c"}, "redirect_uri": {"http://back"}, "response_type": {"code"},
			"state": {"x"}, "code_challenge_method": {"S256"}, "code_challenge": {strings.Repeat("a", 43)},
			"account": {"ana"}}
		for k, v := range try.changes {
			form[k] = v
		}
		r := httptest.NewRequest(http.MethodPost, "/auth", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if back := w.Header().Get("Location"); w.Code != try.status || !strings.HasPrefix(back, try.back) ||
			(back == "") != (try.back == "") {
			t.Errorf("%s: %d to %q, want %d to %q", name, w.Code, back, try.status, try.back)
		}
	}
}

func TestTokenServerAndPrefix(t *testing.T) {
	s := fakeoauth.New(fakeoauth.Client{Key: []byte("a key")}, fakeoauth.Page{}, nil)
	other := fakeoauth.New(fakeoauth.Client{Key: []byte("another key")}, fakeoauth.Page{}, nil)
	token := s.Sign("one_", "ana")
	var got string
	if !s.Read("one_", token, &got) || got != "ana" {
		t.Errorf("%s holds %q", token, got)
	}
	if other.Read("one_", token, &got) || s.Read("two_", token, &got) || s.Read("", token, &got) ||
		s.Read("one_", "one_", &got) {
		t.Errorf("%s is read with another key or prefix", token)
	}
}
