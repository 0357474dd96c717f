// Package auth authenticates callers: a user with an OpenID Connect ID token ([Verifier]), or Google's Pub/Sub and
// Cloud Scheduler with a service account's token ([PushVerifier]). Both use one checker. go-oidc checks signature,
// issuer, audience and expiry. This package checks the rest, because no available library does all of it (reliability
// §0.7 and §0.8). Tokens are read only from the Authorization header, or from the first message of a WebSocket. A token
// in a query would be logged, and a browser would add a cookie even to requests of an untrusted page.
//
// No error contains any part of a token. google.golang.org/api/idtoken is not used, because it accepts any issuer, any
// e-mail address and a future iat, and panics on a short ES256 signature.
package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Config configures which ID tokens are accepted. Issuer and Audience are required.
type Config struct {
	Issuer   string // as in iss: https, or http on a loopback address; discovery finds the keys
	Audience string // as in aud: the Firebase project, or the OAuth client ID
	// Tenant is the Identity Platform tenant. Tokens of another tenant are refused. If Tenant is empty, tokens must
	// have no tenant.
	Tenant         string
	AllowAnonymous bool // whether Firebase's anonymous users are accepted
	// Access means that the tokens are access tokens. Audience must be a token's only audience (RFC 8707). Any client
	// may send one; client_id or azp names the client.
	Access bool
	// Domains lists the allowed domains of users' addresses, in lower case. The issuer must have verified the address.
	// Empty means that users of any domain, or without an address, are accepted.
	Domains    []string
	HTTPClient *http.Client     // for discovery and keys; nil means one with a timeout of 10 s
	Now        func() time.Time // nil means time.Now

}

// Identity is a user whose token has been checked.
type Identity struct {
	UID           string // the token's sub: 1 to 128 of A-Z a-z 0-9 _ . | : @ + -, safe as part of a document path
	Email         string // may be empty
	EmailVerified bool   // the issuer vouches for Email
	Issuer        string
	Auth          decision.Auth // how the issuer authenticated the user
	Client        string        // with Config.Access: the ID of the client that received the token
}

// Verifier checks users' ID tokens. It is safe for concurrent use.
type Verifier struct {
	tokens *checker
	cfg    Config
}

// New returns a Verifier. It makes no network call; the first token starts discovery. The error names the invalid
// setting. An empty audience is invalid, because a library would accept any audience.
func New(cfg Config) (*Verifier, error) {
	if cfg.Audience == "" {
		return nil, errNoAudience
	}
	tokens, err := newChecker(cfg.Issuer, cfg.Audience, cfg.HTTPClient, cfg.Now)
	if err != nil {
		return nil, err
	}
	return &Verifier{tokens: tokens, cfg: cfg}, nil
}

// User returns the user who sent the request. Its errors:
//
//   - AuthError unauthenticated (401): no token, more than one, or one that is expired or not valid here
//   - AuthError forbidden (403): a genuine token of an anonymous user, of another tenant, or without a verified address
//     in Config.Domains
//   - ToolExecutionError issuer_unavailable: the issuer's keys cannot be fetched at the moment
func (v *Verifier) User(r *http.Request) (Identity, error) {
	raw, err := Bearer(r)
	if err != nil {
		return Identity{}, err
	}
	return v.Token(r.Context(), raw)
}

// Issuer returns the issuer whose tokens are checked.
func (v *Verifier) Issuer() string { return v.tokens.keys.issuer }

// Token returns the user that the token identifies. It is for a WebSocket's first message, because browsers cannot send
// a WebSocket request with a header. It returns the errors of User.
func (v *Verifier) Token(ctx context.Context, raw string) (Identity, error) {
	if err := checkLength(raw); err != nil {
		return Identity{}, err
	}
	c, err := v.tokens.verify(ctx, raw)
	if err != nil {
		return Identity{}, err
	}
	if err := v.admit(c); err != nil {
		return Identity{}, err
	}
	id := Identity{UID: c.Subject, Email: c.Email, EmailVerified: c.emailVerified(), Issuer: v.tokens.keys.issuer,
		Auth: c.authentication(v.tokens.keys.issuer)}
	if v.cfg.Access {
		id.Client = c.client()
	}
	return id, nil
}

// serviceAccounts is the suffix of the address of every Google service account.
const serviceAccounts = ".gserviceaccount.com"

var (
	uidPattern = lazyregexp.New(`^[A-Za-z0-9_.|:@+-]{1,128}$`)
	onlyDots   = lazyregexp.New(`^\.+$`)
	reserved   = lazyregexp.New(`^__.*__$`) // Firestore reserves such IDs
)

// admit applies the rules for users only.
func (v *Verifier) admit(c claims) error {
	sub := c.Subject
	if !uidPattern.MatchString(sub) || onlyDots.MatchString(sub) || reserved.MatchString(sub) {
		return unauthenticated("The ID token's subject is not one that this service can use.")
	}
	if err := v.admitClient(c); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(strings.ToLower(c.Email), serviceAccounts):
		return unauthenticated("This is a service account's token, and a user's is required.")
	case !v.cfg.AllowAnonymous && (c.Firebase.Provider == "anonymous" || c.ProviderID == "anonymous"):
		return fault.New(fault.Auth, fault.CodeForbidden, "Anonymous users cannot use this service; please sign in.")
	case c.Firebase.Tenant != v.cfg.Tenant:
		return fault.New(fault.Auth, fault.CodeForbidden, "This account belongs to another tenant.")
	case len(v.cfg.Domains) > 0 && !c.emailVerified():
		return fault.New(fault.Auth, fault.CodeForbidden,
			"This service needs an account with a verified e-mail address.")
	case len(v.cfg.Domains) > 0 && !slices.Contains(v.cfg.Domains, domainOf(c.Email)):
		return fault.New(fault.Auth, fault.CodeForbidden,
			"Accounts of this e-mail domain cannot use this service.")
	}
	return nil
}

// admitClient checks that the token was issued to this application. The check of azp matters most if the issuer is
// Google: anyone with a service account can get a token from Google for any audience, including this service's. Only
// azp tells such a token apart.
func (v *Verifier) admitClient(c claims) error {
	switch {
	case v.cfg.Access && (len(c.Audience) != 1 || c.client() == ""):
		return unauthenticated("The access token is not for this service alone, or does not name its client.")
	case !v.cfg.Access && c.AuthorizedParty != "" && c.AuthorizedParty != v.cfg.Audience:
		return unauthenticated("The ID token was issued to another application.")
	case len(c.Audience) > 1 && c.AuthorizedParty == "":
		return unauthenticated("The ID token is for several audiences and does not say which of them asked for it.")
	}
	return nil
}

// domainOf returns the domain of the address in lower case, or "" if the address does not have exactly one at sign.
func domainOf(email string) string {
	name, domain, _ := strings.Cut(email, "@")
	if name == "" || strings.Contains(domain, "@") {
		return ""
	}
	return strings.ToLower(domain)
}

func unauthenticated(message string) error {
	return fault.New(fault.Auth, fault.CodeUnauthenticated, "%s", message)
}
