package auth

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/agent/decision"
)

const (
	skew        = time.Minute    // how far the issuer's clock may be ahead
	maxLifetime = 24 * time.Hour // maximum time until the expiry; tokens of Google and Firebase live for an hour
)

// header is the part of a token's header that is checked before any key is looked up. go-oidc checks alg again. jku,
// x5u and jwk, with which a token could supply its own key, are ignored.
type header struct {
	Algorithm string         `json:"alg"`
	KeyID     string         `json:"kid"`
	Type      string         `json:"typ"`
	Critical  jsontext.Value `json:"crit"`
	B64       jsontext.Value `json:"b64"`
}

// usable reports whether the header belongs to a valid ID token. Extensions that the header marks as critical are not
// supported (RFC 7515 §4.1.11).
func (h header) usable() bool {
	return h.Algorithm == "RS256" && h.KeyID != "" && (h.Type == "" || strings.EqualFold(h.Type, "JWT")) &&
		h.Critical == nil && h.B64 == nil
}

// claims holds the claims that this package uses. Names are matched exactly and must be unique; times are numbers.
type claims struct {
	Issuer          string         `json:"iss"`
	Subject         string         `json:"sub"`
	Audience        audience       `json:"aud"`
	AuthorizedParty string         `json:"azp"`
	ClientID        string         `json:"client_id"` // of an access token (RFC 9068 §2.2)
	Email           string         `json:"email"`
	EmailVerified   jsontext.Value `json:"email_verified"` // some issuers write a string; only true counts
	Expires         *float64       `json:"exp"`
	IssuedAt        *float64       `json:"iat"`
	NotBefore       *float64       `json:"nbf"`
	SignedInAt      *float64       `json:"auth_time"`
	Methods         methods        `json:"amr"`
	ProviderID      string         `json:"provider_id"`
	Firebase        struct {
		Provider string `json:"sign_in_provider"`
		Tenant   string `json:"tenant"`
	} `json:"firebase"`
}

// audience is one string or a list of them (RFC 7519 §4.1.3).
type audience []string

// UnmarshalJSON accepts either form.
func (a *audience) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*a = make(audience, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// client returns the ID of the client that received the token, or "".
func (c claims) client() string { return cmp.Or(c.ClientID, c.AuthorizedParty) }

// Limits of the methods that a signed decision names.
const (
	maxMethods = 10
	maxMethod  = 32 // bytes
)

// methods are the authentication methods of the claim amr with spaces between them. They are empty if the claim has
// another form than RFC 8176 gives it, such as a string, or names too many.
type methods string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *methods) UnmarshalJSON(data []byte) error {
	var list []string
	tooLong := func(name string) bool { return name == "" || len(name) > maxMethod }
	if json.Unmarshal(data, &list) == nil && len(list) <= maxMethods && !slices.ContainsFunc(list, tooLong) {
		*m = methods(strings.Join(list, " "))
	}
	return nil
}

// authentication returns how the issuer authenticated the user.
func (c claims) authentication(issuer string) decision.Auth {
	auth := decision.Auth{Issuer: issuer}
	if c.SignedInAt != nil {
		auth.At = time.Unix(int64(*c.SignedInAt), 0).UTC()
	}
	auth.Methods = string(c.Methods)
	return auth
}

func (c claims) emailVerified() bool { return string(c.EmailVerified) == "true" }

// checkTimes makes the checks that go-oidc omits or makes loosely: the expiry must exist and be near, and iat, nbf and
// auth_time must not be in the future.
func (c claims) checkTimes(now time.Time) error {
	at := float64(now.Unix())
	latest := at + skew.Seconds()
	switch {
	case c.Expires == nil || c.IssuedAt == nil:
		return errors.New("exp or iat is missing")
	case *c.Expires <= at:
		return errExpired
	case *c.Expires > latest+maxLifetime.Seconds():
		return errors.New("exp is too far in the future")
	case *c.IssuedAt > latest, c.NotBefore != nil && *c.NotBefore > latest, c.SignedInAt != nil &&
		*c.SignedInAt > latest:
		return errors.New("iat, nbf or auth_time is in the future")
	}
	return nil
}

var errExpired = errors.New("the token has expired")
