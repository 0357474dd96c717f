// Package linking manages the accounts that users have linked at a provider. It handles the OAuth 2 consent with PKCE
// (consent.go), the refresh token, which is encrypted and bound to its user (link.go, cipher.go), and the HTTP client
// for tools (client.go, token.go). An access token belongs to one user and one link. It is only kept in memory, unless
// the provider's refresh tokens work only once (kept.go). The packages google and github contain the differences
// between providers.
//
// Stored tokens are encrypted by Tink with the user's ID and the provider as associated data, so a token that is copied
// into another user's document cannot be decrypted there. The package logs nothing. No error contains a token, a code
// or a provider's answer.
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

// Time limits of one call to the token or revocation endpoint, and of each of the saveTries attempts to store its
// answer.
const (
	callTimeout = 15 * time.Second
	saveTimeout = 2 * time.Second
)

// Provider describes a provider's accounts, as far as that needs no OAuth client.
type Provider struct {
	ID       string // used in paths, documents and associated data, such as google
	Name     string // used in messages, such as Google
	Label    string // precedes the account's name on an approval, such as From
	Settings string // address of the page on which users revoke access
}

// Config configures a provider's OAuth client and its endpoints. All fields are required except Scopes, IdentityScopes
// and those whose comment says otherwise.
type Config struct {
	Provider
	ClientID     string
	ClientSecret string
	AuthURL      string
	TokenURL     string
	RedirectURL  string // address of the callback, as registered with the provider; https, or http on loopback

	// Scopes are the scopes that the tools need. No other scope can be requested.
	Scopes []string
	// IdentityScopes are requested with every consent, so that users can see which account is linked.
	IdentityScopes []string

	// Ask returns additional parameters for a consent's address that only this provider has. before is the account that
	// is linked at present, or empty.
	Ask func(before Identity) map[string]string
	// Identify returns the account that a token is for. Its error must not contain the token.
	Identify func(ctx context.Context, c *http.Client, got *oauth2.Token) (Identity, error)
	// Revoke revokes the grant of the token: the refresh token, or the access token if Keeps is set. It reports whether
	// the grant is revoked, now or before. ErrRefused means that the provider does not accept the token for a
	// revocation.
	Revoke func(ctx context.Context, c *http.Client, token string) (bool, error)

	// Keeps means that access tokens are stored, encrypted like refresh tokens. It is for a provider whose refresh
	// tokens work only once and end the previous access token, so that all processes have to use the same tokens, or
	// whose access tokens never expire and come without refresh tokens.
	Keeps bool
	// Refusals are the error codes, besides invalid_grant, with which the token endpoint permanently refuses a code or
	// a refresh token.
	Refusals []string

	AuditDays  int              // number of days that the record of a link is kept; 0: forever
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

// New returns the Accounts in the store. cipher encrypts the tokens (see tokenkey). New makes no call. The error names
// the invalid setting.
func New(cfg Config, st store.Store, cipher tink.AEADWithContext) (*Accounts, error) {
	if cfg.ClientID == "" || cipher == nil {
		return nil, fmt.Errorf("%s: a client ID and a cipher are required", cfg.ID)
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

// Provider returns the provider of these accounts.
func (a *Accounts) Provider() Provider { return a.cfg.Provider }

// calls returns a context for a call to the provider. It has its own deadline and is not cancelled with the caller's:
// an authorization code and a rotated refresh token work only once, and would be lost with an unread answer.
func (a *Accounts) calls(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, a.cfg.HTTPClient)
	return context.WithTimeout(ctx, callTimeout)
}

// Secure returns an error that names the setting if the address is not safe for sending a secret.
func Secure(name, address string) error {
	u, err := url.Parse(address)
	if err == nil && outbound.Secure(u) && u.Fragment == "" {
		return nil
	}
	return fmt.Errorf("%s %q must be an https address (http only on a loopback address)", name, address)
}

// storeDown returns the error for a store that failed before the provider was asked. It keeps the cause as text, so
// that the store's deadline is not mistaken for a call to the provider with an unknown outcome.
func storeDown(err error) error {
	return tool.Transient(fault.Unavailable("The linked accounts cannot be read or written just now; please try again.",
		errors.New(err.Error())))
}

// providerDown returns the error for a failed token endpoint, with the wait that it asks for. Nothing was done with the
// account.
func (c Config) providerDown(err error) error {
	wait := time.Duration(0)
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && answered.Response != nil {
		wait = outbound.RetryAfter(answered.Response.Header, c.Now())
	}
	return tool.Transient(fault.New(fault.Tool, "token_endpoint",
		"%s could not renew access to the linked account; please try again.", c.Name).After(wait).Because(outline(err)))
}

// codeOfError matches OAuth's error codes and no secrets.
var codeOfError = lazyregexp.New(`^[a-z]+(_[a-z]+){0,5}$`)

// outline returns the part of a token endpoint's failure that may be logged. It leaves out the body, which may repeat
// the request.
func outline(err error) error {
	var answered *oauth2.RetrieveError
	if errors.As(err, &answered) && codeOfError.MatchString(answered.ErrorCode) {
		return fmt.Errorf("the token endpoint returned %s", answered.ErrorCode)
	}
	if errors.As(err, &answered) && answered.Response != nil {
		return fmt.Errorf("the token endpoint returned status %d", answered.Response.StatusCode)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("the token endpoint cannot be reached: %v", failed.Err)
	}
	return errors.New("the token endpoint's response was invalid")
}

// refused reports whether the token endpoint has permanently refused a code or a refresh token.
func (a *Accounts) refused(err error) bool {
	var answered *oauth2.RetrieveError
	return errors.As(err, &answered) &&
		(answered.ErrorCode == "invalid_grant" || slices.Contains(a.cfg.Refusals, answered.ErrorCode))
}
