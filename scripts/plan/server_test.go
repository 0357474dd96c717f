package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestServerURL names the server in the forms that the README and the local server print. A server on this machine
// needs neither a token nor a repository.
func TestServerURL(t *testing.T) {
	var begun, as string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /dev/token", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"token":"local"}`)
	})
	mux.HandleFunc("POST "+plans, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		begun, as = string(body), r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"sessionId":"s"}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	host := strings.TrimPrefix(srv.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for name, c := range map[string]struct {
		base, port, token, repo, as string
	}{
		"by PORT":        {port: port, repo: srv.URL + "/dev/github/demo/site", as: "Bearer local"},
		"by its URL":     {base: srv.URL + "/", repo: srv.URL + "/dev/github/demo/site", as: "Bearer local"},
		"by its address": {base: host, repo: srv.URL + "/dev/github/demo/site", as: "Bearer local"},
		"by localhost": {base: "localhost:" + port, repo: "http://localhost:" + port + "/dev/github/demo/site",
			as: "Bearer local"},
		"with one's token": {base: srv.URL, token: "mine", repo: srv.URL + "/dev/github/demo/site", as: "Bearer mine"},
		"a token, unnamed": {port: port, token: "mine", repo: srv.URL + "/dev/github/demo/site", as: "Bearer local"},
	} {
		args := []string{"start", "a wish"}
		if c.base != "" {
			args = []string{"start", "-base", c.base, "a wish"}
		}
		set := map[string]string{"PORT": c.port, "COUNTERSIGN_TOKEN": c.token}
		getenv := func(name string) string { return set[name] }
		err := execute(t.Context(), args, getenv, strings.NewReader(""), io.Discard, io.Discard)
		if err != nil || !strings.Contains(begun, `"repoUrl":"`+c.repo+`"`) || as != c.as {
			t.Errorf("%s: %v, %s as %s", name, err, begun, as)
		}
	}
	for want, args := range map[string][]string{"-repo": {"start", "-base", "https://a.example", "a wish"},
		"COUNTERSIGN_TOKEN": {"show", "-base", "https://a.example", "s"}} {
		none := func(string) string { return "" }
		err := execute(t.Context(), args, none, strings.NewReader(""), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", args, err, want)
		}
	}
}
