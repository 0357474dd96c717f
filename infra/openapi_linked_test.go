package infra_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/web"
)

// oauth holds the settings of a stand whose tests link accounts by hand. noOAuth holds those of a stand that cannot
// link accounts.
var oauth = []string{"GOOGLE_OAUTH_CLIENT_ID=client.apps.googleusercontent.com",
	"GOOGLE_OAUTH_CLIENT_SECRET=a-secret-of-the-client",
	"GOOGLE_OAUTH_AUTH_URL={cloud}/oauth/auth", "GOOGLE_OAUTH_TOKEN_URL={cloud}/oauth/token"}
var noOAuth = []string{"GOOGLE_OAUTH_CLIENT_ID=", "GOOGLE_OAUTH_CLIENT_SECRET=", "GITHUB_CLIENT_ID=",
	"GITHUB_CLIENT_SECRET="}

// connections links and unlinks an account, with an OAuth client and without.
func connections(t *testing.T, d *described) {
	local := d.open(t, nil, noOAuth...)
	local.want(t, 200, ask{op: "connections"})
	for _, id := range []string{"connectGoogle", "disconnectGoogle", "googleCallback", "connectGitHub",
		"disconnectGitHub", "githubCallback"} {
		local.want(t, 409, d.ops[id].plain(t))
	}
	var down atomic.Bool
	s := d.open(t, func(c *testkit.Cloud) {
		c.Handle("/oauth/token", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if down.Load() {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w,
				inJSON(t, map[string]any{"access_token": c.OAuth.AccessToken(testkit.Address("ada")),
					"token_type": "Bearer", "expires_in": 3600, "refresh_token": "1//refresh",
					"scope": strings.Join(testkit.Scopes, " ")}))
		}))
	}, oauth...)
	back := func(more string) ask {
		state, cookie := s.consent(t)
		return ask{op: "googleCallback", query: "state=" + state + "&" + more, header: []string{"Cookie", cookie}}
	}
	s.want(t, 303, back("code=a-code"))
	s.want(t, 200, ask{op: "connections"})
	s.want(t, 200, ask{op: "disconnectGoogle"})
	s.want(t, 400, ask{op: "googleCallback", query: "state=unknown&code=a-code"})
	s.want(t, 400, ask{op: "connectGoogle", body: `{"tools":["no_such_tool"]}`})
	s.want(t, 403, back("error=access_denied"))
	unavailable, broken := back("code=a-code"), back("code=a-code")
	s.store.While(faulty.Down, func() { s.want(t, 503, unavailable) })
	s.store.While(faulty.Fail(errors.New("broken")), func() { s.want(t, 500, broken) })
	down.Store(true)
	s.want(t, 502, back("code=a-code"))
	down.Store(false)
	shut := back("code=a-code")
	if _, err := s.App.API.Records.SetDisabled(t.Context(), "ada", true); err != nil {
		t.Fatal(err)
	}
	s.want(t, 401, shut)
}

// onGitHub links and unlinks a GitHub account.
func onGitHub(t *testing.T, d *described) {
	s := d.open(t, nil)
	begin := func(s *stand) (state, code string, header []string) {
		var begun struct{ URL string }
		a := s.want(t, 200, ask{op: "connectGitHub", body: `{"returnTo":"/settings"}`})
		a.into(t, &begun)
		cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
		state, code, err := s.GitHubApp.Consent(begun.URL, "ada")
		if err != nil {
			t.Fatal(err)
		}
		return state, code, []string{"Cookie", cookie}
	}
	back := func(s *stand) ask {
		state, code, header := begin(s)
		return ask{op: "githubCallback", query: "state=" + state + "&code=" + code, header: header}
	}
	s.want(t, 303, back(s))
	s.want(t, 200, ask{op: "connections"})
	s.want(t, 200, ask{op: "disconnectGitHub"})
	s.want(t, 400, ask{op: "githubCallback", query: "state=unknown&code=a-code"})
	s.want(t, 400, ask{op: "connectGitHub", body: `{"returnTo":"elsewhere"}`})
	state, _, header := begin(s)
	s.want(t, 403, ask{op: "githubCallback", query: "state=" + state + "&error=access_denied", header: header})
	unavailable, broken := back(s), back(s)
	s.store.While(faulty.Down, func() { s.want(t, 503, unavailable) })
	s.store.While(faulty.Fail(errors.New("broken")), func() { s.want(t, 500, broken) })
	shut := back(s)
	if _, err := s.App.API.Records.SetDisabled(t.Context(), "ada", true); err != nil {
		t.Fatal(err)
	}
	s.want(t, 401, shut)
	absent := d.open(t, nil, "GITHUB_API_URL={cloud}/absent")
	absent.want(t, 502, back(absent))
}

// consent starts to link ada's account, and returns the state of Google's redirect and the cookie.
func (s *stand) consent(t *testing.T) (state, cookie string) {
	t.Helper()
	var begun struct{ URL string }
	a := s.want(t, 200, ask{op: "connectGoogle", body: `{"tools":["gmail_send"],"returnTo":"/settings"}`})
	a.into(t, &begun)
	u, err := url.Parse(begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return u.Query().Get("state"), cookie
}

// configuration requests the description, and the console's configuration: without sign-in, with local sign-in, with an
// issuer, and with broken issuers.
func configuration(t *testing.T, d *described) {
	issuers := http.NewServeMux()
	at := httptest.NewServer(issuers)
	defer at.Close()
	for name, says := range map[string]string{
		"good": `,"authorization_endpoint":"%[1]s/auth","token_endpoint":"%[1]s/token","code_challenge_methods_supported":["S256"]`, "odd": ""} {
		issuers.HandleFunc("/"+name+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.ReplaceAll(`{"issuer":"%[1]s"`+says+`}`, "%[1]s", at.URL+"/"+name))
		})
	}
	for _, c := range []struct {
		options web.Options
		status  int
	}{
		{web.Options{Release: "r1"}, 200}, {web.Options{Release: "r1", Local: true, LocalUsers: true}, 200},
		{web.Options{Issuer: at.URL + "/good", ClientID: "console"}, 200},
		{web.Options{Issuer: at.URL + "/odd", ClientID: "console"}, 401},
		{web.Options{Issuer: at.URL + "/none", ClientID: "console"}, 503},
	} {
		site, err := web.New(c.options)
		if err != nil {
			t.Fatal(err)
		}
		served := httptest.NewServer(obs.Middleware(obs.New(io.Discard, obs.Options{}),
			strings.NewReader(strings.Repeat("0123456789abcdef", 64)), time.Now, site))
		s := &stand{described: d, Deployment: &testkit.Deployment{Base: served.URL}}
		s.want(t, c.status, ask{op: "configuration"})
		s.want(t, 200, ask{op: "description"})
		s.want(t, 200, ask{op: "health"})
		served.Close()
	}
}

// slowBodies sends every operation an incomplete body, all at the same time. Each operation waits for ten seconds.
func slowBodies(t *testing.T, d *described) {
	s := d.open(t, nil)
	open := map[string]net.Conn{}
	for id, op := range s.ops {
		if op.Responses.Status(http.StatusRequestTimeout) == nil {
			continue
		}
		q := op.plain(t)
		c, err := net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		kind := "application/json"
		if op.form() {
			kind = formHeader[1]
		}
		_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: "+
			"100\r\nAuthorization: Bearer %s\r\n\r\n{", op.method, op.at(q.params...), kind, s.token(t, op, q))
		if err != nil {
			t.Fatal(err)
		}
		open[id] = c
	}
	for id, c := range open {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusRequestTimeout {
			t.Fatalf("%s answered %d %s, %v", id, res.StatusCode, body, err)
		}
		s.holds(t, s.ops[id], answer{res.StatusCode, res.Header, string(body)})
	}
}

func number(t *testing.T, status string) int {
	t.Helper()
	n, err := strconv.Atoi(status)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
