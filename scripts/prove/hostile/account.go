package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/countersign-run/countersign/shared/testkit"
)

// account is a linked Google account with the consent that the case describes. In a case without one, every account is
// linked and valid (env.token).
type account struct {
	scopes   []string
	unlinked bool
	refresh  string // the token endpoint's answer once the consent is broken: an OAuth error or a status

	isBroken  atomic.Bool
	refreshed atomic.Int64 // number of refused refreshes
}

// account reads the part oauth of a case.
func (s *env) account() *account {
	v, ok := s.take("oauth")
	if !ok {
		return nil
	}
	s.byHand = true
	spec, _ := v.(map[string]any)
	if text, ok := v.(string); ok { // described in one word
		spec = map[string]any{"account": text}
	}
	a := &account{scopes: testkit.Scopes}
	for name, part := range spec {
		list, isList := part.([]any)
		switch {
		case name == "refresh", name == "refresh_error", name == "error":
			a.refresh = textOf(part)
		case (name == "linked" || name == "account") && unlinked.MatchString(jsonOf(part)):
			a.unlinked = true
		case name == "scopes" && isList:
			a.scopes = nil
			for _, one := range list {
				a.scopes = append(a.scopes, textOf(one))
			}
		default:
			s.unknown("oauth: %s", name)
		}
	}
	return a
}

// unlinked matches a case without a linked account.
var unlinked = regexp.MustCompile(`(?i)^"?(false|none|missing|unlinked|not linked|no|null)"?$`)

const (
	refreshToken = "1//refresh-token-CANARY"
	clientSecret = "client-secret-CANARY"
)

func (a *account) settings() []string {
	if a == nil {
		return nil
	}
	return []string{"GOOGLE_OAUTH_CLIENT_ID=client.apps.googleusercontent.com",
		"GOOGLE_OAUTH_CLIENT_SECRET=" + clientSecret,
		"GOOGLE_OAUTH_AUTH_URL={cloud}/oauth/auth", "GOOGLE_OAUTH_TOKEN_URL={cloud}/oauth/token"}
}

// link links the account as the user, with the scopes that it grants.
func (a *account) link(s *env) {
	if a == nil || a.unlinked {
		return
	}
	access := s.w.OAuth.AccessToken(testkit.Address(s.as))
	s.w.Handle("/oauth/token",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.token(w, r, access) }))
	begun := s.call(s.as, "POST", "/api/agent/connections/google", `{}`)
	var consent struct{ URL string }
	s.must(json.Unmarshal(begun.Body, &consent))
	page, err := url.Parse(consent.URL)
	s.must(err)
	// The callback's response is not part of the case. With fewer scopes than requested, it reports that.
	m := message{uid: s.as, route: route{"GET", "/api/agent/connections/google/callback"}, header: http.Header{}}
	cookie, _, _ := strings.Cut(begun.Header.Get("Set-Cookie"), ";")
	m.header.Set("Cookie", cookie)
	m.query = url.Values{"state": {page.Query().Get("state")}, "code": {"a-code"}}.Encode()
	if s.send(m); a.refresh != "" && s.c.Input["after"] == nil {
		a.breakNow()
	}
}

// token is the handler of the token endpoint. It returns the access token, or refuses once the consent is broken.
func (a *account) token(w http.ResponseWriter, r *http.Request, access string) {
	w.Header().Set("Content-Type", "application/json")
	if a.isBroken.Load() && r.FormValue("grant_type") == "refresh_token" {
		a.refreshed.Add(1)
		status := http.StatusBadRequest
		if n, err := fmt.Sscanf(a.refresh, "%d", &status); n == 1 && err == nil {
			w.WriteHeader(status)
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":%q,"error_description":"Token has been expired or revoked."}`, a.refresh)
		return
	}
	fmt.Fprint(w, jsonOf(map[string]any{"access_token": access, "token_type": "Bearer",
		"expires_in":    json.Number("3600"),
		"refresh_token": refreshToken, "scope": strings.Join(a.scopes, " ")}))
}

// breakNow withdraws the consent. Countersign has no access token yet, because it requests one only for the first
// effect.
func (a *account) breakNow() {
	if a != nil {
		a.isBroken.Store(true)
	}
}

// broken checks the recorded events of a withdrawn consent.
func (a *account) broken(s *env) {
	if a == nil || a.refresh != "invalid_grant" {
		return
	}
	list := s.call(s.as, "GET", "/api/agent/connections", "")
	if !strings.Contains(string(list.Body), `"status":"broken"`) {
		s.wrong("the connection is not marked: %s", list.Body)
	}
	if n := a.refreshed.Load(); n != 1 {
		s.wrong("a refresh was asked for %d times", n)
	}
}
