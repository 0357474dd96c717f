// Package google manages the Google accounts that users have linked: their consent by OAuth 2 with PKCE (consent.go),
// the refresh token, encrypted and bound to its user (link.go, cipher.go), and the HTTP client that a tool uses
// (client.go, token.go). An access token is for one user and one link, lives in memory and is never stored.
//
// The refresh token is encrypted by Tink with the user's id as associated data, so one that is copied into another
// user's document cannot be decrypted there. The package logs nothing, and no token, code or provider's answer is part
// of an error.
package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/outbound"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
)

// Google's own endpoints (https://accounts.google.com/.well-known/openid-configuration).
const (
	AuthURL   = "https://accounts.google.com/o/oauth2/v2/auth"
	TokenURL  = "https://oauth2.googleapis.com/token"
	RevokeURL = "https://oauth2.googleapis.com/revoke"
)

// ConnectPath is the endpoint that makes or renews a link, as messages name it.
const ConnectPath = "POST /api/agent/connections/google"

const callTimeout = 15 * time.Second // limit of one call to the token or revocation endpoint

// Config configures the OAuth client and its endpoints.
type Config struct {
	ClientID     string
	ClientSecret string
	AuthURL      string // Google's if empty
	TokenURL     string // Google's if empty
	// RevokeURL is Google's if it and TokenURL are empty. If only RevokeURL is empty, nothing is revoked at the
	// provider.
	RevokeURL   string
	RedirectURL string // address of the callback, as registered with the provider; https, or http on loopback

	// Scopes are those that the tools need. No other can be requested.
	Scopes []string

	AuditDays  int              // for how many days the record of a link is kept; 0: for good
	HTTPClient *http.Client     // its transport and timeout are used; nil means the default transport and 60 s
	Now        func() time.Time // nil means time.Now
	Rand       io.Reader        // nil means crypto/rand
}

// Accounts manages the linked accounts of all users. It is safe for concurrent use.
type Accounts struct {
	cfg     Config
	oauth   oauth2.Config
	store   store.Store
	cipher  tink.AEADWithContext
	flights singleflight.Group
	tokens  tokens
}

// New returns the Accounts in the store, with the cipher for refresh tokens (see tokenkey). It makes no call. The error
// names the setting that is invalid.
func New(cfg Config, st store.Store, cipher tink.AEADWithContext) (*Accounts, error) {
	if cfg.ClientID == "" || len(cfg.Scopes) == 0 || cipher == nil {
		return nil, errors.New("google: a client id, the tools' scopes and a cipher are needed")
	}
	if cfg.RevokeURL == "" && cfg.TokenURL == "" {
		cfg.RevokeURL = RevokeURL
	}
	if cfg.AuthURL == "" {
		cfg.AuthURL = AuthURL
	}
	if cfg.TokenURL == "" {
		cfg.TokenURL = TokenURL
	}
	for name, address := range map[string]string{"AuthURL": cfg.AuthURL, "TokenURL": cfg.TokenURL,
		"RedirectURL": cfg.RedirectURL} {
		if !secure(address) {
			return nil, fmt.Errorf("google: %s %q must be an https address (http only on a loopback address)", name,
				address)
		}
	}
	if cfg.RevokeURL != "" && !secure(cfg.RevokeURL) {
		return nil, fmt.Errorf("google: RevokeURL %q must be an https address (http only on a loopback address)",
			cfg.RevokeURL)
	}
	a := &Accounts{cfg: withDefaults(cfg), store: st, cipher: cipher, tokens: tokens{m: map[string]token{}}}
	a.oauth = oauth2.Config{
		ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret, RedirectURL: cfg.RedirectURL,
		// AuthStyleInParams, because autodetection sends a code or a refresh token twice.
		Endpoint: oauth2.Endpoint{AuthURL: cfg.AuthURL, TokenURL: cfg.TokenURL, AuthStyle: oauth2.AuthStyleInParams},
	}
	return a, nil
}

// calls returns a context for a call to the provider that has its own deadline and is not cancelled with the caller: an
// authorization code and a rotated refresh token can be used once, and are lost with an answer that is not read.
func (a *Accounts) calls(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, a.cfg.HTTPClient)
	return context.WithTimeout(ctx, callTimeout)
}

func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && outbound.Secure(u) && u.Fragment == ""
}

// storeDown returns the error of a store that failed before anything was asked of Google. The cause is kept as text: a
// deadline of the store must not be taken for a call to Google with an unknown outcome.
func storeDown(err error) error {
	return tool.Transient(fault.Unavailable("The linked accounts cannot be read or written just now; please try again.",
		errors.New(err.Error())))
}

// providerDown returns the error of Google's token endpoint; nothing was done with the account.
func providerDown(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_endpoint",
		"Google could not be asked for access to the linked account; please try again.").Because(outline(err)))
}

// outline returns what may be logged of a token endpoint's failure: never the body, which may repeat what was sent.
func outline(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil {
		return fmt.Errorf("the token endpoint answered with status %d", answered.Response.StatusCode)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("the token endpoint was not reached: %v", failed.Err)
	}
	return errors.New("the token endpoint's answer could not be used")
}

func isInvalidGrant(err error) bool {
	var answered *oauth2.RetrieveError
	return errors.As(err, &answered) && answered.ErrorCode == "invalid_grant"
}
