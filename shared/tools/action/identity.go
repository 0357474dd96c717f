package action

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Header is the HTTP header that tells an endpoint which user it is called for. Its value is a JWT, signed with HS256
// and the operator's key, that is valid for one request.
const Header = "Countersign-Identity"

// identityLife is how long an identity is valid.
const identityLife = time.Minute

// identity is the JWT's claims, beside the registered ones: iss, sub (the user), aud (the endpoint's origin), iat, exp,
// and jti (the action's id, which is the Idempotency-Key too).
type identity struct {
	jwt.Claims
	Action   string `json:"action"`
	BodyHash string `json:"bodyHash"` // SHA-256, in hex, of the body; of the query where there is no body
}

// DeriveKey returns the key of one endpoint (binding: {key: derived}), as the text that both sides use: HKDF (RFC 5869,
// SHA-256) of the operator's key over the action's name and the origin of its URL, in hex. Its holder cannot sign for
// another endpoint.
func DeriveKey(operator []byte, a Action) (string, error) {
	if a.Metadata == nil || a.Metadata.Binding == nil || !a.Metadata.Binding.DerivedKey {
		return "", fmt.Errorf("the action %s has no key of its own; a binding with key: derived was expected", a.Name)
	}
	u, err := url.Parse(a.Metadata.Binding.URL)
	if err != nil {
		return "", err
	}
	key, err := hkdf.Key(sha256.New, operator, nil, "countersign action key\n"+a.Name+"\n"+origin(u), MinKey)
	return hex.EncodeToString(key), err
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// signer signs identities.
type signer struct {
	issuer string
	now    func() time.Time
	jose   jose.Signer
}

func newSigner(key []byte, issuer string, now func() time.Time) (*signer, error) {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	return &signer{issuer, now, s}, err
}

func (s *signer) sign(uid, actionID, action string, to *url.URL, bodyHash string) (string, error) {
	now := s.now()
	return jwt.Signed(s.jose).Claims(identity{
		Claims: jwt.Claims{Issuer: s.issuer, Subject: uid, Audience: jwt.Audience{origin(to)}, ID: actionID,
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(identityLife))},
		Action: action, BodyHash: bodyHash,
	}).Serialize()
}
