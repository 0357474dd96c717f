package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTokensOfOtherOrigins expects tokens for pages of an allowed origin, and none for pages of another one.
func TestTokensOfOtherOrigins(t *testing.T) {
	t.Setenv("ALLOWED_ORIGINS", "http://localhost:9000")
	s := startTestServer(t)
	ask := func(method, origin string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, testBase+"/dev/token", strings.NewReader(`{"uid":"ana"}`))
		if origin != "" {
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for _, origin := range []string{"", testBase, "http://localhost:9000"} {
		w := ask(http.MethodPost, origin)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"token"`) ||
			w.Header().Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("%q is answered %d %v: %s", origin, w.Code, w.Header(), w.Body)
		}
	}
	if w := ask(http.MethodOptions, "http://localhost:9000"); w.Code != http.StatusNoContent ||
		w.Header().Get("Access-Control-Allow-Headers") != "Content-Type" {
		t.Errorf("the preflight request is answered %d %v", w.Code, w.Header())
	}
	for _, origin := range []string{"http://localhost:9001", "https://localhost:9000", "null"} {
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			w := ask(method, origin)
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), origin) ||
				w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s of %q is answered %d %v: %s", method, origin, w.Code, w.Header(), w.Body)
			}
		}
	}
}
