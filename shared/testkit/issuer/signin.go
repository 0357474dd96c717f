package issuer

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const tokenLifetime = time.Hour

// Client is the public client whose users sign in by browser.
type Client struct {
	ID        string
	Redirects []string                      // the exact redirect URIs
	SignedIn  func(uid, email string) error // called for each user; may refuse one
}

// grant is the sign-in that a code belongs to.
type grant struct{ client, uid, email, nonce, redirect string }

// ServeSignIn enables the sign-in of the client's users: OpenID Connect's authorization code with PKCE (RFC 7636, S256
// only), and the ID token in the fragment (OpenID Connect Core §3.2), as Google serves it to clients without a secret.
// Every visitor is signed in with the name that they enter.
func (i *Issuer) ServeSignIn(c Client) {
	i.console = &c
	i.serveSignIn()
}

// serveSignIn enables the authorization and token endpoints.
func (i *Issuer) serveSignIn() {
	if i.served {
		return
	}
	i.served = true
	i.mux.HandleFunc("GET "+i.path()+"/authorize", i.ask)
	i.mux.Handle("POST "+i.path()+"/authorize", http.NewCrossOriginProtection().Handler(http.HandlerFunc(i.authorize)))
	i.mux.HandleFunc("POST "+i.path()+"/token", i.redeem)
}

// request is an authorization request.
type request struct {
	ClientID, Redirect, Type, State, Nonce, Challenge, Resource string

	UID, Email, Problem string // the user's input, and the mistake in it
	Agent               string // the name of the program that asks to act for the user, or ""
}

// read validates the parameters that must be valid before a browser may be redirected.
func (i *Issuer) read(r *http.Request) (request, error) {
	q := request{ClientID: r.FormValue("client_id"), Redirect: r.FormValue("redirect_uri"),
		Type: r.FormValue("response_type"), State: r.FormValue("state"), Nonce: r.FormValue("nonce"),
		Challenge: r.FormValue("code_challenge"), Resource: r.FormValue("resource"), UID: r.FormValue("uid"),
		Email: r.FormValue("email")}
	if q.Type == "code" && (r.FormValue("code_challenge_method") != "S256" || len(q.Challenge) != 43) {
		return q, errors.New("code_challenge is required, with the method S256")
	}
	if i.console != nil && q.ClientID == i.console.ID {
		return q, i.console.check(q)
	}
	a, ok := i.programs.get(q.ClientID)
	if !ok {
		return q, errors.New("client_id is not a client of this issuer")
	}
	q.Agent = cmp.Or(a.Name, a.ID)
	return q, i.programs.check(a, q)
}

func (c *Client) check(q request) error {
	switch {
	case !slices.Contains(c.Redirects, q.Redirect):
		return errors.New("redirect_uri is not one of the client's")
	case q.Type != "code" && q.Type != "id_token":
		return errors.New("response_type must be code or id_token")
	case q.Nonce == "":
		return errors.New("nonce is required")
	}
	return nil
}

func (p *programs) check(a program, q request) error {
	switch {
	case !a.redirects(q.Redirect):
		return errors.New("redirect_uri is not one of the client's")
	case q.Type != "code":
		return errors.New("response_type must be code")
	case q.Resource != p.Resource:
		return errors.New("resource must be " + p.Resource)
	}
	return nil
}

// ask shows the sign-in page.
func (i *Issuer) ask(w http.ResponseWriter, r *http.Request) {
	q, err := i.read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.UID = "demo"
	show(w, http.StatusOK, q)
}

// authorize signs the user in and redirects the browser back.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	q, err := i.read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.Email = cmp.Or(q.Email, UsualEmail(q.UID))
	if r.PostFormValue("answer") == "no" && q.Agent != "" {
		no := url.Values{"error": {"access_denied"}, "state": {q.State}, "iss": {i.url}}
		http.Redirect(w, r, with(q.Redirect, no), http.StatusSeeOther)
		return
	}
	if err := i.signedIn(q); err != nil {
		q.Problem = err.Error()
		show(w, http.StatusBadRequest, q)
		return
	}
	g := grant{q.ClientID, q.UID, q.Email, q.Nonce, q.Redirect}
	back := url.Values{"state": {q.State}, "iss": {i.url}}
	if q.Type == "code" {
		back.Set("code", i.codes.Give(g, q.Challenge, i.now()))
		http.Redirect(w, r, with(q.Redirect, back), http.StatusSeeOther)
		return
	}
	token, err := i.idToken(g)
	if err != nil {
		http.Error(w, "the token could not be created", http.StatusInternalServerError)
		return
	}
	back.Set("id_token", token)
	http.Redirect(w, r, q.Redirect+"#"+back.Encode(), http.StatusSeeOther)
}

// ownAddress matches a name that is an e-mail address. Addresses of example.com are derived from other names.
var ownAddress = lazyregexp.New(`^[a-z0-9._+-]{1,64}@[a-z0-9.-]{1,190}$`)

// UsualEmail returns the default address of a user. Two names never share an address, even if addresses are compared
// without regard to case: a capital letter becomes _ and its lower-case letter, and any other character _ and its
// number.
func UsualEmail(uid string) string {
	const domain, most = "@example.com", 64
	if ownAddress.MatchString(uid) && !strings.HasSuffix(uid, domain) {
		return uid
	}
	var local strings.Builder
	for _, b := range []byte(uid) {
		switch {
		case b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || strings.IndexByte(".+-", b) >= 0:
			local.WriteByte(b)
		case b >= 'A' && b <= 'Z':
			fmt.Fprintf(&local, "_%c", b+'a'-'A')
		default:
			fmt.Fprintf(&local, "_%03d", b)
		}
	}
	if local.Len() <= most {
		return local.String() + domain
	}
	sum := sha256.Sum256([]byte(uid)) // no shorter name has two adjacent _
	return local.String()[:most/2-2] + "__" + hex.EncodeToString(sum[:most/4]) + domain
}

func (i *Issuer) signedIn(q request) error {
	if q.Agent != "" {
		return i.programs.SignedIn(q.UID, q.Email)
	}
	return i.console.SignedIn(q.UID, q.Email)
}

// with adds parameters to an address.
func with(address string, more url.Values) string {
	if strings.Contains(address, "?") {
		return address + "&" + more.Encode()
	}
	return address + "?" + more.Encode()
}

// redeem exchanges a code, or a program's refresh token, for tokens (RFC 6749 §4.1.3 and §6, RFC 7636 §4.5).
func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	w.Header().Set("Cache-Control", "no-store")
	tokens, err := i.tokens(r)
	if err != nil {
		refuse(w, "invalid_grant")
		return
	}
	answer(w, tokens)
}

func (i *Issuer) tokens(r *http.Request) (map[string]any, error) {
	id := r.PostFormValue("client_id")
	if r.PostFormValue("grant_type") == "refresh_token" {
		uid, err := i.refreshed(r.PostFormValue("refresh_token"), id)
		if err != nil {
			return nil, err
		}
		return i.accessTokens(uid, id)
	}
	g, proven := i.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), i.now())
	if !proven || r.PostFormValue("grant_type") != "authorization_code" || id != g.client ||
		r.PostFormValue("redirect_uri") != g.redirect {
		return nil, errors.New("issuer: no such code")
	}
	if i.console == nil || id != i.console.ID {
		return i.accessTokens(g.uid, id)
	}
	token, err := i.idToken(g)
	return map[string]any{"id_token": token, "access_token": rand.Text(), "token_type": "Bearer",
		"expires_in": int(tokenLifetime.Seconds())}, err
}

// refuse sends an error in the form of RFC 6749 §5.2 and RFC 7591 §3.2.2.
func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(`{"error":"` + code + `"}`)) // a client that disconnected is not an error
}

func (i *Issuer) idToken(g grant) (string, error) {
	now := i.now()
	return i.Sign(map[string]any{"iss": i.url, "aud": i.console.ID, "sub": g.uid, "email": g.email,
		"email_verified": true, "nonce": g.nonce,
		"iat": now.Unix(), "auth_time": now.Unix(), "exp": now.Add(tokenLifetime).Unix()})
}

func show(w http.ResponseWriter, status int, q request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// form-action is open because the form redirects to the client.
	h.Set("Content-Security-Policy", "default-src 'none'; form-action *; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_ = page.Execute(w, q) // a browser that disconnected is not an error
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>Local issuer: sign in</title></head>
<body><main><h1>Local issuer</h1>
<p>Anyone can sign in here, because only this machine can reach it.</p>
{{with .Agent}}<p><strong>{{.}}</strong> asks to act for you. What it asks for waits for your approval each time.</p>{{end}}
{{with .Problem}}<p role="alert">{{.}}</p>{{end}}
<form method="post">
<input type="hidden" name="client_id" value="{{.ClientID}}"><input type="hidden" name="redirect_uri" value="{{.Redirect}}">
<input type="hidden" name="response_type" value="{{.Type}}"><input type="hidden" name="state" value="{{.State}}"><input type="hidden" name="nonce" value="{{.Nonce}}">
<input type="hidden" name="resource" value="{{.Resource}}"><input type="hidden" name="code_challenge" value="{{.Challenge}}"><input type="hidden" name="code_challenge_method" value="S256">
<p><label>User <input name="uid" value="{{.UID}}" required maxlength="128"></label></p>
<p><label>E-mail <input name="email" type="email" value="{{.Email}}" placeholder="NAME@example.com" maxlength="254"></label></p>
<p>{{if .Agent}}<button>Allow</button> <button name="answer" value="no" formnovalidate>Do not allow</button>
{{else}}<button>Sign in</button>{{end}}</p>
</form></main></body></html>
`))
