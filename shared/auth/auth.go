// Package auth authenticates callers: a user with an OpenID Connect ID token ([Verifier]), or Google's Pub/Sub and
// Cloud Scheduler with a service account's token ([PushVerifier]). Both use one check (checker): go-oidc checks
// signature, issuer, audience and expiry; the rest is checked here, because no available library does all of it
// (reliability §0.7 and §0.8). Only the Authorization header is read, and of a WebSocket its first message: a token in
// a query would be logged, and a cookie would also be sent by a page that its user did not mean to trust.
//
// No error contains any part of a token. google.golang.org/api/idtoken is not used: it accepts any issuer, any e-mail
// address and a future iat, and panics on a short ES256 signature.
package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// Config configures which ID tokens are accepted. Issuer and Audience are required.
type Config struct {
	Issuer   string // as in iss: https, or http on a loopback address; discovery finds the keys
	Audience string // as in aud: the Firebase project, or the OAuth client id
	// Tenant is the Identity Platform tenant; tokens of another tenant are refused, and if it is empty, those of any
	// tenant.
	Tenant         string
	AllowAnonymous bool // whether Firebase's anonymous users are accepted
	// Access says that these are access tokens, which any client may bring that the issuer has given one for Audience
	// and nothing else (RFC 8707); the client is named by client_id or azp.
	Access bool
	// Domains are those of the users' addresses, in lower case; an address must be verified by the issuer. Empty means
	// that users of any domain, or without an address, are accepted.
	Domains    []string
	HTTPClient *http.Client     // for discovery and keys; nil means one with a timeout of 10 s
	Now        func() time.Time // nil means time.Now

}

// Identity is a user whose token has been checked.
type Identity struct {
	UID           string // the token's sub: 1 to 128 of A-Z a-z 0-9 _ . | : @ + -, safe as part of a document path
	Email         string // may be empty
	EmailVerified bool   // whether the issuer vouches for Email
	Issuer        string
	Client        string // with Config.Access: the id of the client that the token was given to
}

// Verifier checks users' ID tokens. It is safe for concurrent use.
type Verifier struct {
	tokens *checker
	cfg    Config
}

// New returns a Verifier. It makes no network call: discovery waits for the first token. The error names the setting
// that is invalid; an empty audience is, because a library would accept any audience.
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
//   - AuthError unauthenticated (401): no token, more than one, or one that is invalid here or expired
//   - AuthError forbidden (403): a genuine token of an anonymous user, of another tenant, or without a verified address
//     of one of Config.Domains
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

// Token returns the user whose token it is, for what a browser cannot send with a header: a WebSocket's first message.
// Errors as User.
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
	id := Identity{UID: c.Subject, Email: c.Email, EmailVerified: c.emailVerified(), Issuer: v.tokens.keys.issuer}
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
	reserved   = lazyregexp.New(`^__.*__$`) // Firestore reserves such ids
)

// admit applies the rules for users only. The one about azp matters most if the issuer is Google: anyone can have
// Google sign a token of their own service account for any audience, including this service's, and only azp
// distinguishes it.
func (v *Verifier) admit(c claims) error {
	sub := c.Subject
	switch {
	case !uidPattern.MatchString(sub) || onlyDots.MatchString(sub) || reserved.MatchString(sub):
		return unauthenticated("The ID token's subject is not one that this service can use.")
	case v.cfg.Access && (len(c.Audience) != 1 || c.client() == ""):
		return unauthenticated("The access token is not for this service alone, or does not name its client.")
	case !v.cfg.Access && c.AuthorizedParty != "" && c.AuthorizedParty != v.cfg.Audience:
		return unauthenticated("The ID token was issued to another application.")
	case len(c.Audience) > 1 && c.AuthorizedParty == "":
		return unauthenticated("The ID token is for several audiences and does not say which of them asked for it.")
	case strings.HasSuffix(strings.ToLower(c.Email), serviceAccounts):
		return unauthenticated("This is a service account's token, and a user's is needed.")
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

// domainOf returns the part of the address after its one at sign, in lower case, or "" if the address has another form.
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
