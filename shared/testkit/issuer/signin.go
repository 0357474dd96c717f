package issuer

import (
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const tokenLifetime = time.Hour

// Client is the public client whose users sign in by browser.
type Client struct {
	ID        string
	Redirects []string                      // the exact redirect URIs
	SignedIn  func(uid, email string) error // called for each user; may refuse one
}

// signIn serves sign-in by browser: OpenID Connect's authorization code with PKCE (RFC 7636, S256 only), and the ID
// token in the fragment (OpenID Connect Core §3.2), as Google serves it to clients without a secret. Every visitor is
// signed in, under the name that they enter.
type signIn struct {
	Client
	codes Codes[grant]
}

// grant is what a code was given for.
type grant struct{ uid, email, nonce, redirect string }

// ServeSignIn enables the authorization and token endpoints for the client.
func (i *Issuer) ServeSignIn(c Client) {
	i.signIn = &signIn{Client: c}
	u, err := url.Parse(i.url)
	if err != nil {
		panic("issuer: " + err.Error()) // New has parsed it
	}
	i.mux.HandleFunc("GET "+u.Path+"/authorize", i.ask)
	i.mux.Handle("POST "+u.Path+"/authorize", http.NewCrossOriginProtection().Handler(http.HandlerFunc(i.authorize)))
	i.mux.HandleFunc("POST "+u.Path+"/token", i.redeem)
}

// request is an authorization request.
type request struct {
	ClientID, Redirect, Type, State, Nonce, Challenge string
	UID, Email, Problem                               string // the user's input, and what is wrong with it
}

// read validates what must be right before a browser may be redirected.
func (i *Issuer) read(r *http.Request) (request, error) {
	q := request{r.FormValue("client_id"), r.FormValue("redirect_uri"), r.FormValue("response_type"),
		r.FormValue("state"), r.FormValue("nonce"),
		r.FormValue("code_challenge"), r.FormValue("uid"), r.FormValue("email"), ""}
	switch {
	case q.ClientID != i.signIn.ID:
		return q, errors.New("client_id is not the client that this issuer knows")
	case !slices.Contains(i.signIn.Redirects, q.Redirect):
		return q, errors.New("redirect_uri is not one of the client's")
	case q.Type != "code" && q.Type != "id_token":
		return q, errors.New("response_type must be code or id_token")
	case q.Type == "code" && (r.FormValue("code_challenge_method") != "S256" || len(q.Challenge) != 43):
		return q, errors.New("code_challenge is needed, by the method S256")
	case q.Nonce == "":
		return q, errors.New("nonce is needed")
	}
	return q, nil
}

// ask shows the sign-in page.
func (i *Issuer) ask(w http.ResponseWriter, r *http.Request) {
	q, err := i.read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.UID, q.Email = "demo", "demo@example.com"
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
	if err := i.signIn.SignedIn(q.UID, q.Email); err != nil {
		q.Problem = err.Error()
		show(w, http.StatusBadRequest, q)
		return
	}
	g := grant{q.UID, q.Email, q.Nonce, q.Redirect}
	back := url.Values{"state": {q.State}}
	if q.Type == "code" {
		back.Set("code", i.signIn.codes.Give(g, q.Challenge, i.now()))
		http.Redirect(w, r, q.Redirect+"?"+back.Encode(), http.StatusSeeOther)
		return
	}
	token, err := i.idToken(g)
	if err != nil {
		http.Error(w, "no token could be made", http.StatusInternalServerError)
		return
	}
	back.Set("id_token", token)
	http.Redirect(w, r, q.Redirect+"#"+back.Encode(), http.StatusSeeOther)
}

// redeem exchanges a code for the ID token (RFC 6749 §4.1.3, RFC 7636 §4.5).
func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	w.Header().Set("Cache-Control", "no-store")
	g, proven := i.signIn.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), i.now())
	if !proven || r.PostFormValue("grant_type") != "authorization_code" ||
		r.PostFormValue("client_id") != i.signIn.ID || r.PostFormValue("redirect_uri") != g.redirect {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`)) // a client that disconnected is not an error
		return
	}
	token, err := i.idToken(g)
	if err != nil {
		http.Error(w, "no token could be made", http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"id_token": token, "access_token": rand.Text(), "token_type": "Bearer",
		"expires_in": int(tokenLifetime.Seconds())})
}

func (i *Issuer) idToken(g grant) (string, error) {
	now := i.now()
	return i.Sign(map[string]any{"iss": i.url, "aud": i.signIn.ID, "sub": g.uid, "email": g.email,
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
{{with .Problem}}<p role="alert">{{.}}</p>{{end}}
<form method="post">
<input type="hidden" name="client_id" value="{{.ClientID}}"><input type="hidden" name="redirect_uri" value="{{.Redirect}}">
<input type="hidden" name="response_type" value="{{.Type}}"><input type="hidden" name="state" value="{{.State}}"><input type="hidden" name="nonce" value="{{.Nonce}}">
<input type="hidden" name="code_challenge" value="{{.Challenge}}"><input type="hidden" name="code_challenge_method" value="S256">
<p><label>User <input name="uid" value="{{.UID}}" required maxlength="128"></label></p>
<p><label>E-mail <input name="email" type="email" value="{{.Email}}" required maxlength="254"></label></p>
<p><button>Sign in</button></p>
</form></main></body></html>
`))
