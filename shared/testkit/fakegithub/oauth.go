package fakegithub

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
)

// The lifetimes of the tokens of a GitHub App.
const (
	accessLifetime  = 8 * time.Hour
	refreshLifetime = 15897600 * time.Second // six months, as GitHub counts them
)

// OAuthOptions are the options of an [OAuth] server.
type OAuthOptions struct {
	fakeoauth.Client
	// access tokens do not expire and there are no refresh tokens: the App has opted out of expiry
	Eternal bool
}

// OAuth is the OAuth server of the local GitHub for one GitHub App: consents, user tokens, and the App's revocation. As
// at GitHub, the use of a refresh token invalidates it and the previous access token, and errors have the status 200.
// The record of used tokens does not survive a restart.
type OAuth struct {
	*fakeoauth.Server
	eternal bool

	mu     sync.Mutex
	serial int64
	newest map[int64]int64  // by consent, the serial number of its newest tokens
	gone   map[string]int64 // by login, the serial number up to which all consents are revoked
}

// NewOAuth returns the server of an App.
func NewOAuth(o OAuthOptions) *OAuth {
	page := fakeoauth.Page{Provider: "GitHub", Asks: "read and change repositories", Type: "text", Button: "Authorize",
		Hint: "login", Denied: "The user has denied your application access."}
	s := fakeoauth.New(o.Client, page, func(login string) error {
		if !validLogin.MatchString(login) {
			return errors.New("a login is required")
		}
		return nil
	})
	return &OAuth{Server: s, eternal: o.Eternal, newest: map[int64]int64{}, gone: map[string]int64{}}
}

var validLogin = lazyregexp.New(`^[A-Za-z0-9](-?[A-Za-z0-9]){0,38}$`)

// Routes serves GitHub's pages below web and the App's part of the API below api. Neither has a trailing slash.
func (o *OAuth) Routes(mux *http.ServeMux, web, api string) {
	o.Authorize(mux, web+"/login/oauth/authorize")
	mux.HandleFunc("POST "+web+"/login/oauth/access_token", o.redeem)
	mux.HandleFunc("DELETE "+api+"/applications/{client}/grant", o.revoke)
}

// redeem issues tokens for a code or a refresh token.
func (o *OAuth) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if !o.Authentic(r.PostFormValue("client_id"), r.PostFormValue("client_secret")) {
		say(w, r, url.Values{"error": {"incorrect_client_credentials"},
			"error_description": {"The client_id and/or client_secret passed are incorrect."}})
		return
	}
	if r.PostFormValue("grant_type") == "refresh_token" {
		next, ok := o.renew(r.PostFormValue("refresh_token"))
		if !ok {
			say(w, r, url.Values{"error": {"bad_refresh_token"},
				"error_description": {"The refresh token passed is incorrect or expired."}})
			return
		}
		say(w, r, next)
		return
	}
	login, ok := o.Redeem(r)
	if !ok {
		say(w, r, url.Values{"error": {"bad_verification_code"},
			"error_description": {"The code passed is incorrect or expired."}})
		return
	}
	say(w, r, o.begin(login))
}

// numbers are the parameters that are numbers in JSON.
var numbers = map[string]bool{"expires_in": true, "refresh_token_expires_in": true}

// say answers in the form that the request accepts: a query, unless it asks for JSON. Errors also have the status
// 200.
func say(w http.ResponseWriter, r *http.Request, q url.Values) {
	if !strings.Contains(r.Header.Get("Accept"), "json") {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = w.Write([]byte(q.Encode())) // a client that disconnected is not an error
		return
	}
	body := map[string]any{}
	for name := range q {
		body[name] = q.Get(name)
		if numbers[name] {
			body[name] = json.Number(q.Get(name))
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(body)
}

// revoke revokes the consent of an access token (DELETE /applications/{client_id}/grant).
func (o *OAuth) revoke(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	var in struct {
		AccessToken string `json:"access_token"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)).Decode(&in)
	t, ok := o.read(kindAccess, in.AccessToken)
	switch {
	case !o.Authentic(id, secret) || r.PathValue("client") != id:
		unauthenticated().handler()(w, r)
	case err != nil || in.AccessToken == "":
		invalid("OauthAccess", "access_token", "missing", "").handler()(w, r)
	case !ok:
		missing().handler()(w, r)
	default:
		o.RevokeAll(t.Login)
		w.WriteHeader(http.StatusNoContent)
	}
}

// User returns the login of an access token, for [Options].
func (o *OAuth) User(bearer string) (login string, ok bool) {
	t, ok := o.read(kindAccess, bearer)
	return t.Login, ok
}

// Token returns an access token of the account, like one that a person creates for themselves.
func (o *OAuth) Token(login string) string { return o.begin(login).Get("access_token") }

// RevokeAll revokes everything that the user has granted to the App, as they can do in GitHub's settings.
func (o *OAuth) RevokeAll(login string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[login] = o.next()
}
