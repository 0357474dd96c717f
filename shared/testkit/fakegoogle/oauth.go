package fakegoogle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const accessLifetime = time.Hour

// OAuthOptions are the options of an [OAuth] server.
type OAuthOptions struct {
	ClientID, ClientSecret string
	Redirect               string         // the only redirect URI; empty: any
	Key                    []byte         // the key that signs the tokens
	Issuer                 *issuer.Issuer // of the ID tokens
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Scopes returns the scopes that the account has granted. If there are none, its tokens are no longer valid.
	// Required.
	Scopes func(email string) []string
}

// OAuth is the OAuth 2 server of the local Google (RFC 6749 §4.1 with PKCE, RFC 7636). A caller gets the account that
// it names. Its tokens are signed and not stored, so they survive a restart.
type OAuth struct {
	opts  OAuthOptions
	codes issuer.Codes[grant]
}

// grant is the consent behind a code.
type grant struct{ email, redirect string }

// NewOAuth returns the server of a client.
func NewOAuth(o OAuthOptions) *OAuth {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &OAuth{opts: o}
}

// Routes serves the authorization endpoint at prefix+"auth" and the token endpoint at prefix+"token".
func (o *OAuth) Routes(mux *http.ServeMux, prefix string) {
	mux.HandleFunc("GET "+prefix+"auth", o.ask)
	mux.Handle("POST "+prefix+"auth", http.NewCrossOriginProtection().Handler(http.HandlerFunc(o.agree)))
	mux.HandleFunc("POST "+prefix+"token", o.redeem)
}

// check validates an authorization request.
func (o *OAuth) check(q url.Values) error {
	switch {
	case q.Get("client_id") != o.opts.ClientID:
		return errors.New("client_id is not the local client")
	case o.opts.Redirect != "" && q.Get("redirect_uri") != o.opts.Redirect:
		return errors.New("redirect_uri is not the local client's")
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		len(q.Get("code_challenge")) != 43:
		return errors.New("a code with a code_challenge by S256 is needed")
	case q.Get("state") == "":
		return errors.New("state is needed")
	}
	return nil
}

var consentPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Local Google</title>
<meta name="viewport" content="width=device-width">
<h1>Local Google</h1>
<p>Countersign asks to send mail and make events for you. Nothing leaves this machine.</p>
<form method="post">{{range .Fields}}<input type="hidden" name="{{index . 0}}" value="{{index . 1}}">{{end}}
<p><label>Account <input name="account" type="email" required value="{{.Account}}"></label></p>
<p><button>Allow</button> <button name="answer" value="no" formnovalidate>Cancel</button></p></form></html>`))

// asked lists the parameters of a request that the page's form sends again.
var asked = []string{"client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state"}

// ask shows the consent page.
func (o *OAuth) ask(w http.ResponseWriter, r *http.Request) {
	if err := o.check(r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page := struct {
		Account string
		Fields  [][2]string
	}{Account: r.FormValue("login_hint")}
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
	state, code, err := "", "", r.ParseForm()
	if err == nil {
		err = o.check(r.Form)
	}
	back := url.Values{"state": {r.FormValue("state")}, "error": {"access_denied"}}
	if err == nil && r.FormValue("answer") != "no" {
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
func (o *OAuth) Consent(address, email string) (state, code string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	return o.allow(u.Query(), email)
}

func (o *OAuth) allow(q url.Values, email string) (state, code string, err error) {
	if err := o.check(q); err != nil {
		return "", "", err
	}
	if !ValidAddress(email) {
		return "", "", errors.New("an e-mail address is needed")
	}
	return q.Get("state"), o.codes.Give(grant{email, q.Get("redirect_uri")}, q.Get("code_challenge"), o.opts.Now()), nil
}

// ValidAddress reports whether an account can have the address.
func ValidAddress(email string) bool { return address.MatchString(email) }

var address = lazyregexp.New(`^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,190}$`)

// redeem issues tokens for a code or a refresh token.
func (o *OAuth) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != o.opts.ClientID || secret != o.opts.ClientSecret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	var email string
	var ok bool
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		var g grant
		g, ok = o.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), o.opts.Now())
		email, ok = g.email, ok && g.redirect == r.PostFormValue("redirect_uri")
	case "refresh_token":
		email, ok = o.read("refresh", r.PostFormValue("refresh_token"))
	}
	if !ok {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	idToken, err := o.opts.Issuer.Token("google-"+email, email, o.opts.ClientID, accessLifetime)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "server_error")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"token_type": "Bearer", "expires_in": int(accessLifetime.Seconds()),
		"scope": "openid email " + strings.Join(o.opts.Scopes(email), " "), "id_token": idToken,
		"access_token": o.AccessToken(email), "refresh_token": o.sign(signed{"refresh", email, 0})})
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "{%q:%q}\n", "error", code)
}

// signed is the content of a token.
type signed struct {
	Kind  string `json:"kind"`
	Email string `json:"email"`
	Until int64  `json:"until,omitempty"` // Unix seconds; 0: no expiry
}

func (o *OAuth) sign(s signed) string {
	body, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain values can be encoded
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(o.mac(text))
}

func (o *OAuth) mac(text string) []byte {
	h := hmac.New(sha256.New, o.opts.Key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// read returns the account of a valid token.
func (o *OAuth) read(kind, token string) (email string, ok bool) {
	text, sum, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, o.mac(text)) {
		return "", false
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	var s signed
	if err != nil || json.Unmarshal(body, &s) != nil {
		return "", false
	}
	return s.Email, s.Kind == kind && (s.Until == 0 || o.opts.Now().Unix() < s.Until)
}

// AccessToken returns an access token of the account, valid for an hour.
func (o *OAuth) AccessToken(email string) string {
	return o.sign(signed{"access", email, o.opts.Now().Add(accessLifetime).Unix()})
}

// User returns the account of an access token and the scopes that it has granted, for [Options].User.
func (o *OAuth) User(bearer string) (email string, scopes []string, ok bool) {
	email, ok = o.read("access", bearer)
	if ok {
		scopes = o.opts.Scopes(email)
	}
	return email, scopes, ok && len(scopes) > 0
}
