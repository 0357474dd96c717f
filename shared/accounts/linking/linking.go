// Package linking manages the accounts that users have linked at a provider: their consent by OAuth 2 with PKCE
// (consent.go), the refresh token, encrypted and bound to its user (link.go, cipher.go), and the HTTP client that a
// tool uses (client.go, token.go). An access token is for one user and one link. It lives in memory and is not stored,
// unless the provider's refresh tokens can be used once (kept.go). What differs from provider to provider comes from
// packages of their own (google, github).
//
// Stored tokens are encrypted by Tink with the user's ID and the provider as associated data, so a token copied into
// another user's document cannot be decrypted there. The package logs nothing, and no token, code or provider's answer
// is part of an error.
package linking

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/store"
)

// ErrRefused says that a provider does not accept a token.
var ErrRefused = errors.New("the provider does not accept the token")

// Limits of one call to the token or revocation endpoint, and of each of saveTries to store what it answered.
const (
	callTimeout = 15 * time.Second
	saveTimeout = 2 * time.Second
)

// Provider describes a provider's accounts, without an OAuth client.
type Provider struct {
	ID       string // in paths, documents and associated data: google
	Name     string // in messages: Google
	Label    string // before an account's name on an approval: From
	Settings string // address of the page where its users take access back
}

// Config configures the OAuth client of a provider and its endpoints. All but Scopes, IdentityScopes and what says so
// are required.
type Config struct {
	Provider
	ClientID     string
	ClientSecret string
	AuthURL      string
	TokenURL     string
	RedirectURL  string // address of the callback, as registered with the provider; https, or http on loopback

	// Scopes are those that the tools need. No other can be requested.
	Scopes []string
	// IdentityScopes are requested with every consent, so that a user sees which account is linked.
	IdentityScopes []string

	// Ask returns the parameters of a consent's address that only this provider has. before is the account that is
	// linked by now, or empty.
	Ask func(before Identity) map[string]string
	// Identify returns the account that a token is for. It must not tell the token in its error.
	Identify func(ctx context.Context, c *http.Client, got *oauth2.Token) (Identity, error)
	// Revoke reports whether the provider has taken back what the token allows, now or before: the refresh token, or
	// the access token where those are kept. ErrRefused says that the provider does not accept the token for that.
	Revoke func(ctx context.Context, c *http.Client, token string) (bool, error)

	// Keeps says that access tokens are kept, encrypted like the refresh tokens: where a refresh token can be used once
	// and ends the access token before, so that all processes have to use the same one; or where access tokens do not
	// end and there are no others.
	Keeps bool
	// Refusals are the codes beside invalid_grant with which the token endpoint refuses a code or a refresh token for
	// good.
	Refusals []string

	AuditDays  int              // for how many days the record of a link is kept; 0: for good
	HTTPClient *http.Client     // its transport and timeout are used; nil means the default transport and 60 s
	Now        func() time.Time // nil means time.Now
	Rand       io.Reader        // nil means crypto/rand
}

// Accounts manages the linked accounts of all users at one provider. It is safe for concurrent use.
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
	if cfg.ClientID == "" || cipher == nil {
		return nil, fmt.Errorf("%s: a client id and a cipher are needed", cfg.ID)
	}
	for name, address := range map[string]string{"AuthURL": cfg.AuthURL, "TokenURL": cfg.TokenURL,
		"RedirectURL": cfg.RedirectURL} {
		if err := Secure(name, address); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.ID, err)
		}
	}
	a := &Accounts{cfg: withDefaults(cfg), store: st, cipher: cipher, tokens: tokens{m: map[string]token{}}}
	a.oauth = oauth2.Config{
		ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret, RedirectURL: cfg.RedirectURL,
		// AuthStyleInParams, because autodetection sends a code or a refresh token twice.
		Endpoint: oauth2.Endpoint{AuthURL: cfg.AuthURL, TokenURL: cfg.TokenURL, AuthStyle: oauth2.AuthStyleInParams},
	}
	return a, nil
}

// Provider returns whose accounts these are.
func (a *Accounts) Provider() Provider { return a.cfg.Provider }

// calls returns a context for a call to the provider that has its own deadline and is not cancelled with the caller: an
// authorization code and a rotated refresh token can be used once, and are lost with an answer that is not read.
func (a *Accounts) calls(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, a.cfg.HTTPClient)
	return context.WithTimeout(ctx, callTimeout)
}

// Secure returns an error that names the setting if its address may not be sent a secret.
func Secure(name, address string) error {
	u, err := url.Parse(address)
	if err == nil && outbound.Secure(u) && u.Fragment == "" {
		return nil
	}
	return fmt.Errorf("%s %q must be an https address (http only on a loopback address)", name, address)
}

// storeDown returns the error of a store that failed before anything was asked of the provider. The cause is kept as
// text: a deadline of the store must not be taken for a call to the provider with an unknown outcome.
func storeDown(err error) error {
	return tool.Transient(fault.Unavailable("The linked accounts cannot be read or written just now; please try again.",
		errors.New(err.Error())))
}

// providerDown returns the error of the token endpoint; nothing was done with the account.
func (p Provider) providerDown(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_endpoint",
		"%s could not be asked for access to the linked account; please try again.", p.Name).Because(outline(err)))
}

// codeOfError is what OAuth's error codes look like, which no secret does.
var codeOfError = lazyregexp.New(`^[a-z]+(_[a-z]+){0,5}$`)

// outline returns the loggable part of a token endpoint's failure. It omits the body, which may repeat the request.
func outline(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && codeOfError.MatchString(answered.ErrorCode) {
		return fmt.Errorf("the token endpoint answered with %s", answered.ErrorCode)
	}
	if errors.As(err, &answered) && answered.Response != nil {
		return fmt.Errorf("the token endpoint answered with status %d", answered.Response.StatusCode)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("the token endpoint was not reached: %v", failed.Err)
	}
	return errors.New("the token endpoint's answer could not be used")
}

// refused reports whether the token endpoint has refused a code or a refresh token for good.
func (a *Accounts) refused(err error) bool {
	var answered *oauth2.RetrieveError
	return errors.As(err, &answered) &&
		(answered.ErrorCode == "invalid_grant" || slices.Contains(a.cfg.Refusals, answered.ErrorCode))
}
