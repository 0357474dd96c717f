package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/keyfile"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// The local Google's OAuth client and its endpoints.
const (
	localClient  = "local-client.apps.localhost"
	localSecret  = "of-no-use-outside-of-this-machine"
	consentPath  = "/dev/accounts/auth"
	redeemPath   = "/dev/accounts/token"
	callbackPath = "/api/agent/connections/google/callback"

	localCode   = time.Minute
	localAccess = time.Hour
	maxConsents = 1000 // codes not yet redeemed
)

// consents is the OAuth 2 server of the local Google (RFC 6749 §4.1 with PKCE, RFC 7636). Its users are those of the
// local server, each with the account of their address. Its tokens are signed and not stored, so they survive a
// restart.
type consents struct {
	key      []byte
	redirect string // the only redirect URI
	issuer   *issuer.Issuer
	now      func() time.Time

	mu    sync.Mutex
	codes map[string]consent
}

// consent is the grant of a code, which is valid once.
type consent struct {
	email, challenge string
	until            time.Time
}

func openConsents(dir, base string, iss *issuer.Issuer) (*consents, error) {
	key, err := keyfile.Read(dir, "local-google-key", func(w io.Writer) error {
		_, err := io.CopyN(w, rand.Reader, 32)
		return err
	})
	return &consents{key: key, redirect: base + callbackPath, issuer: iss, now: time.Now, codes: map[string]consent{}},
		err
}

func (c *consents) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+consentPath, c.ask)
	mux.Handle("POST "+consentPath, http.NewCrossOriginProtection().Handler(http.HandlerFunc(c.agree)))
	mux.HandleFunc("POST "+redeemPath, c.redeem)
}

// check validates an authorization request.
func (c *consents) check(r *http.Request) error {
	switch {
	case r.FormValue("client_id") != localClient:
		return errors.New("client_id is not the local client")
	case r.FormValue("redirect_uri") != c.redirect:
		return errors.New("redirect_uri is not the local client's")
	case r.FormValue("response_type") != "code" || r.FormValue("code_challenge_method") != "S256" ||
		len(r.FormValue("code_challenge")) != 43:
		return errors.New("a code with a code_challenge by S256 is needed")
	case r.FormValue("state") == "":
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
<p><button>Allow</button></p></form></html>`))

// asked lists the parameters of a request that the page's form sends again.
var asked = []string{"client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state"}

// ask shows the page of the consent.
func (c *consents) ask(w http.ResponseWriter, r *http.Request) {
	if err := c.check(r); err != nil {
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

// agree redirects the browser back with a code.
func (c *consents) agree(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	if err := c.check(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	email := r.FormValue("account")
	if !validEmail.MatchString(email) {
		http.Error(w, "an e-mail address is needed", http.StatusBadRequest)
		return
	}
	code := c.keep(consent{email, r.FormValue("code_challenge"), c.now().Add(localCode)})
	http.Redirect(w, r, c.redirect+"?"+url.Values{"state": {r.FormValue("state")}, "code": {code}}.Encode(),
		http.StatusSeeOther)
}

func (c *consents) keep(given consent) (code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for known, old := range c.codes {
		if len(c.codes) >= maxConsents || !c.now().Before(old.until) {
			delete(c.codes, known)
		}
	}
	code = rand.Text()
	c.codes[code] = given
	return code
}

// take returns the account of a code, once, if the verifier matches.
func (c *consents) take(code, verifier string) (email string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	given, ok := c.codes[code]
	delete(c.codes, code)
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return given.email, ok && c.now().Before(given.until) &&
		subtle.ConstantTimeCompare([]byte(challenge), []byte(given.challenge)) == 1
}

// redeem issues tokens for a code or a refresh token.
func (c *consents) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != localClient || secret != localSecret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	var email string
	var ok bool
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		email, ok = c.take(r.PostFormValue("code"), r.PostFormValue("code_verifier"))
		ok = ok && r.PostFormValue("redirect_uri") == c.redirect
	case "refresh_token":
		email, ok = c.read("refresh", r.PostFormValue("refresh_token"))
	}
	if !ok {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	idToken, err := c.issuer.Token("google-"+email, email, localClient, localAccess)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "server_error")
		return
	}
	writeJSON(w, map[string]any{"token_type": "Bearer", "expires_in": int(localAccess.Seconds()),
		"scope": "openid email " + strings.Join(localScopes, " "), "id_token": idToken,
		"access_token":  c.sign(signed{"access", email, c.now().Add(localAccess).Unix()}),
		"refresh_token": c.sign(signed{"refresh", email, 0})})
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

func (c *consents) sign(s signed) string {
	body, err := json.Marshal(s)
	if err != nil {
		panic(err) // plain values marshal
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(c.mac(text))
}

func (c *consents) mac(text string) []byte {
	h := hmac.New(sha256.New, c.key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// read returns the account of a valid token.
func (c *consents) read(kind, token string) (email string, ok bool) {
	text, sum, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, c.mac(text)) {
		return "", false
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	var s signed
	if err != nil || json.Unmarshal(body, &s) != nil {
		return "", false
	}
	return s.Email, s.Kind == kind && (s.Until == 0 || c.now().Unix() < s.Until)
}

// account returns the account of an access token, for the local Gmail and Calendar.
func (c *consents) account(bearer string) (email string, scopes []string, ok bool) {
	email, ok = c.read("access", bearer)
	return email, localScopes, ok
}

// link links the local account of a user who signs in, through the same consent as any account. A user who has linked
// another one meanwhile keeps it, until they sign in with another address. If linking fails the sign-in still succeeds:
// the user is asked to link an account when one is needed.
func (s *server) link(ctx context.Context, uid, email string, changed bool) {
	accounts := s.app.API.Accounts
	if !s.env.localGoogle() || accounts == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	linked, err := accounts.List(ctx, uid)
	if err == nil && (changed || len(linked) == 0) {
		err = s.consent(ctx, accounts, uid, email)
	}
	if err != nil {
		s.app.Log.WarnContext(ctx, "the local account could not be linked at the sign-in", "error", err)
	}
}

func (s *server) consent(ctx context.Context, accounts *google.Accounts, uid, email string) error {
	begun, err := accounts.Start(ctx, uid, nil, "/")
	if err != nil {
		return err
	}
	to, err := url.Parse(begun.URL)
	if err != nil {
		return err
	}
	form := to.Query()
	form.Set("account", email)
	to.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return fmt.Errorf("the local consent answered %s", res.Status)
	}
	_, _, err = accounts.Callback(ctx,
		google.Answer{State: back.Query().Get("state"), Code: back.Query().Get("code"), Browser: begun.Browser})
	return err
}
