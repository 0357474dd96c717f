package fakegoogle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const accessLifetime = time.Hour

// OAuthOptions are the options of an [OAuth] server.
type OAuthOptions struct {
	fakeoauth.Client
	Issuer *issuer.Issuer // of the ID tokens
	// Scopes returns the scopes that the account has granted. If there are none, its tokens are no longer valid.
	// Required.
	Scopes func(email string) []string
}

// OAuth is the OAuth 2 server of the local Google.
type OAuth struct {
	*fakeoauth.Server
	opts OAuthOptions
}

// NewOAuth returns the server of a client.
func NewOAuth(o OAuthOptions) *OAuth {
	page := fakeoauth.Page{Provider: "Google", Asks: "send mail and make events", Type: "email", Button: "Allow",
		Hint: "login_hint"}
	return &OAuth{opts: o, Server: fakeoauth.New(o.Client, page, func(email string) error {
		if !ValidAddress(email) {
			return errors.New("an e-mail address is required")
		}
		return nil
	})}
}

// Routes serves the authorization endpoint at prefix+"auth" and the token endpoint at prefix+"token".
func (o *OAuth) Routes(mux *http.ServeMux, prefix string) {
	o.Authorize(mux, prefix+"auth")
	mux.HandleFunc("POST "+prefix+"token", o.redeem)
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
	if !o.Authentic(id, secret) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	var email string
	var ok bool
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		email, ok = o.Redeem(r)
	case "refresh_token":
		email, ok = o.read("refresh", r.PostFormValue("refresh_token"))
	}
	if !ok {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	idToken, err := o.opts.Issuer.Token("google-"+email, email, o.ClientID, accessLifetime)
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

func (o *OAuth) sign(content signed) string { return o.Sign("", content) }

// read returns the account of a valid token.
func (o *OAuth) read(kind, token string) (email string, ok bool) {
	var s signed
	ok = o.Read("", token, &s)
	return s.Email, ok && s.Kind == kind && (s.Until == 0 || o.Now().Unix() < s.Until)
}

// AccessToken returns an access token of the account, valid for an hour.
func (o *OAuth) AccessToken(email string) string {
	return o.sign(signed{"access", email, o.Now().Add(accessLifetime).Unix()})
}

// User returns the account of an access token and the scopes that it has granted, for [Options].User.
func (o *OAuth) User(bearer string) (email string, scopes []string, ok bool) {
	email, ok = o.read("access", bearer)
	if ok {
		scopes = o.opts.Scopes(email)
	}
	return email, scopes, ok && len(scopes) > 0
}
