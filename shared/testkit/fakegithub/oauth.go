package fakegithub

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// The lifetimes of the tokens of a GitHub App.
const (
	accessLifetime  = 8 * time.Hour
	refreshLifetime = 15897600 * time.Second // six months, as GitHub counts them
)

// OAuthOptions are the options of an [OAuth] server.
type OAuthOptions struct {
	ClientID, ClientSecret string
	Redirect               string // the only redirect URI; empty: any
	Key                    []byte // the key that signs the tokens
	// access tokens do not expire and there are no refresh tokens: the App has opted out of expiry
	Eternal bool
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// OAuth is the OAuth server of the local GitHub for one GitHub App: consents with PKCE (RFC 7636), user tokens, and
// the App's revocation. A caller gets the account that it names. As at GitHub, the use of a refresh token invalidates
// it and the previous access token, and errors have the status 200. Tokens are signed and not stored, so they survive
// a restart; the record of used tokens does not.
type OAuth struct {
	opts  OAuthOptions
	codes issuer.Codes[consent]

	mu     sync.Mutex
	serial int64
	newest map[int64]int64  // by consent, the serial number of its newest tokens
	gone   map[string]int64 // by login, the serial number up to which all consents are revoked
}

// consent is the consent behind a code.
type consent struct{ login, redirect string }

// NewOAuth returns the server of an App.
func NewOAuth(o OAuthOptions) *OAuth {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &OAuth{opts: o, newest: map[int64]int64{}, gone: map[string]int64{}}
}

// Routes serves GitHub's pages below web and the App's part of the API below api. Neither has a trailing slash.
func (o *OAuth) Routes(mux *http.ServeMux, web, api string) {
	mux.HandleFunc("GET "+web+"/login/oauth/authorize", o.ask)
	mux.Handle("POST "+web+"/login/oauth/authorize", http.NewCrossOriginProtection().Handler(http.HandlerFunc(o.agree)))
	mux.HandleFunc("POST "+web+"/login/oauth/access_token", o.redeem)
	mux.HandleFunc("DELETE "+api+"/applications/{client}/grant", o.revoke)
}

// check validates an authorization request.
func (o *OAuth) check(q url.Values) error {
	switch {
	case q.Get("client_id") != o.opts.ClientID:
		return errors.New("client_id is not the local App's")
	case o.opts.Redirect != "" && q.Get("redirect_uri") != o.opts.Redirect:
		return errors.New("redirect_uri is not the local App's")
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		return errors.New("a code_challenge by S256 is needed")
	case q.Get("state") == "":
		return errors.New("state is needed")
	}
	return nil
}

var consentPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Local GitHub</title>
<meta name="viewport" content="width=device-width">
<h1>Local GitHub</h1>
<p>Countersign asks to read and change repositories for you. Nothing leaves this machine.</p>
<form method="post">{{range .Fields}}<input type="hidden" name="{{index . 0}}" value="{{index . 1}}">{{end}}
<p><label>Account <input name="account" required value="{{.Account}}"></label></p>
<p><button name="answer" value="yes">Authorize</button> <button name="answer" value="no" formnovalidate>Cancel</button></p></form></html>`))

// asked lists the parameters of a request that the page's form sends again.
var asked = []string{"client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state"}

// ask shows the consent page.
func (o *OAuth) ask(w http.ResponseWriter, r *http.Request) {
	if err := o.check(r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page := struct {
		Account string
		Fields  [][2]string
	}{Account: r.FormValue("login")}
	for _, name := range asked {
		page.Fields = append(page.Fields, [2]string{name, r.FormValue(name)})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_ = consentPage.Execute(w, page) // a browser that disconnected is not an error
}

// agree redirects the browser back with a code, or with the error of a refusal.
func (o *OAuth) agree(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	back, state, code, err := url.Values{}, "", "", r.ParseForm()
	switch {
	case err == nil && r.FormValue("answer") == "no":
		if err = o.check(r.Form); err == nil {
			back = url.Values{"state": {r.FormValue("state")}, "error": {"access_denied"},
				"error_description": {"The user has denied your application access."}}
		}
	case err == nil:
		state, code, err = o.allow(r.Form, r.FormValue("account"))
		back = url.Values{"state": {state}, "code": {code}}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

// Consent acts as a user who opens the address, chooses the account, and agrees. It returns the parameters with which
// their browser is sent back.
func (o *OAuth) Consent(address, login string) (state, code string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	return o.allow(u.Query(), login)
}

var validLogin = lazyregexp.New(`^[A-Za-z0-9](-?[A-Za-z0-9]){0,38}$`)

func (o *OAuth) allow(q url.Values, login string) (state, code string, err error) {
	if err := o.check(q); err != nil {
		return "", "", err
	}
	if !validLogin.MatchString(login) {
		return "", "", errors.New("a login is needed")
	}
	return q.Get("state"), o.codes.Give(consent{login, q.Get("redirect_uri")}, q.Get("code_challenge"), o.opts.Now()),
		nil
}

// redeem issues tokens for a code or a refresh token.
func (o *OAuth) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if r.PostFormValue("client_id") != o.opts.ClientID || r.PostFormValue("client_secret") != o.opts.ClientSecret {
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
	c, ok := o.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), o.opts.Now())
	if !ok || c.redirect != r.PostFormValue("redirect_uri") {
		say(w, r, url.Values{"error": {"bad_verification_code"},
			"error_description": {"The code passed is incorrect or expired."}})
		return
	}
	say(w, r, o.begin(c.login))
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
	case id != o.opts.ClientID || secret != o.opts.ClientSecret || r.PathValue("client") != id:
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
