// Package fakeoauth has the common parts of the OAuth servers of the local Google, GitHub and issuer: the consent page,
// authorization codes, and signed tokens.
package fakeoauth

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Client describes the only client of a [Server].
type Client struct {
	ClientID, ClientSecret string
	Redirect               string // the only redirect URI; empty: any
	Key                    []byte // the key that signs the tokens
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Page describes the consent page of a [Server].
type Page struct {
	Provider string // "Google"
	Asks     string // what the client wants to do for the user
	Type     string // the type of the input field for the account
	Button   string // the label of the button that agrees
	Hint     string // the query parameter with the account that the page suggests
	Denied   string // the error_description after a refusal; empty: none
}

// Server serves the authorization endpoint of an OAuth server for one client (RFC 6749 §4.1 with PKCE, RFC 7636), and
// signs the server's tokens. Callers choose any account by its name. Tokens are signed and not stored, so they survive
// a restart.
type Server struct {
	Client
	page  Page
	valid func(account string) error
	codes Codes[consent]

	mu sync.Mutex // for ClientID and ClientSecret
}

// consent is the consent that a code belongs to.
type consent struct{ account, redirect string }

// New returns a server. valid returns an error for an invalid account name.
func New(c Client, p Page, valid func(account string) error) *Server {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Server{Client: c, page: p, valid: valid}
}

// Authorize serves the authorization endpoint at the path.
func (s *Server) Authorize(mux *http.ServeMux, path string) {
	mux.HandleFunc("GET "+path, s.ask)
	mux.Handle("POST "+path, http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.agree)))
}

// check validates an authorization request.
func (s *Server) check(q url.Values) error {
	s.mu.Lock()
	id := s.ClientID
	s.mu.Unlock()
	switch {
	case q.Get("client_id") != id:
		return errors.New("client_id is not the local client's")
	case s.Redirect != "" && q.Get("redirect_uri") != s.Redirect:
		return errors.New("redirect_uri is not the local client's")
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		len(q.Get("code_challenge")) != 43:
		return errors.New("a code_challenge with the method S256 is required")
	case q.Get("state") == "":
		return errors.New("state is required")
	}
	return nil
}

var consentPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Local {{.Provider}}</title>
<meta name="viewport" content="width=device-width">
<h1>Local {{.Provider}}</h1>
<p>Countersign asks to {{.Asks}} for you. Nothing leaves this machine.</p>
<form method="post">{{range .Fields}}<input type="hidden" name="{{index . 0}}" value="{{index . 1}}">{{end}}
<p><label>Account <input name="account" type="{{.Type}}" required value="{{.Account}}"></label></p>
<p><button>{{.Button}}</button> <button name="answer" value="no" formnovalidate>Cancel</button></p></form></html>`))

// asked lists the parameters of a request that the page's form sends again.
var asked = []string{"client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state"}

// ask shows the consent page.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	if err := s.check(r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page := struct {
		Page
		Account string
		Fields  [][2]string
	}{Page: s.page, Account: r.FormValue(s.page.Hint)}
	for _, name := range asked {
		page.Fields = append(page.Fields, [2]string{name, r.FormValue(name)})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_ = consentPage.Execute(w, page) // a browser that disconnected is not an error
}

// agree redirects the browser back with a code, or with the error of a refusal.
func (s *Server) agree(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	back, err := url.Values{}, r.ParseForm()
	if err == nil {
		back, err = s.answer(r.Form)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

// answer returns the parameters that the browser takes back to the client.
func (s *Server) answer(form url.Values) (url.Values, error) {
	if form.Get("answer") != "no" {
		state, code, err := s.allow(form, form.Get("account"))
		return url.Values{"state": {state}, "code": {code}}, err
	}
	back := url.Values{"state": {form.Get("state")}, "error": {"access_denied"}}
	if s.page.Denied != "" {
		back.Set("error_description", s.page.Denied)
	}
	return back, s.check(form)
}

// Consent acts as a user who opens the address, chooses the account, and agrees. It returns the parameters with which
// their browser is sent back.
func (s *Server) Consent(address, account string) (state, code string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", err
	}
	return s.allow(u.Query(), account)
}

func (s *Server) allow(q url.Values, account string) (state, code string, err error) {
	if err := s.check(q); err != nil {
		return "", "", err
	}
	if err := s.valid(account); err != nil {
		return "", "", err
	}
	return q.Get("state"), s.codes.Give(consent{account, q.Get("redirect_uri")}, q.Get("code_challenge"), s.Now()), nil
}

// Redeem returns the account of the code in a token request, and drops the code.
func (s *Server) Redeem(r *http.Request) (account string, ok bool) {
	c, ok := s.codes.Take(r.PostFormValue("code"), r.PostFormValue("code_verifier"), s.Now())
	return c.account, ok && c.redirect == r.PostFormValue("redirect_uri")
}

// Authentic reports whether a request has the client's credentials.
func (s *Server) Authentic(id, secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id == s.ClientID && secret == s.ClientSecret
}

// SetClient replaces the client. The earlier client is refused from now on. Unlike a real server, the server accepts
// the earlier client's refresh tokens from the new client.
func (s *Server) SetClient(id, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ClientID, s.ClientSecret = id, secret
}
