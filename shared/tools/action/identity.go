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

// Header is the HTTP header that identifies the user of a call to an endpoint. Its value is a JWT that is valid for one
// request, signed with HS256 and the operator's key.
const Header = "Countersign-Identity"

// identityLife is the lifetime of an identity.
const identityLife = time.Minute

// identity holds the JWT's claims. The registered ones are iss, sub (the user), aud (the endpoint's origin), iat, exp,
// and jti (the action's ID, which is also the Idempotency-Key).
type identity struct {
	jwt.Claims
	Action   string `json:"action"`
	BodyHash string `json:"bodyHash"` // SHA-256 of the body in hexadecimal; of the query if there is no body
}

// DeriveKey returns the key of one endpoint (binding: {key: derived}), in hexadecimal. It is the HKDF (RFC 5869,
// SHA-256) of the operator's key over the action's name and the origin of its URL. Both sides use the hexadecimal text.
// The endpoint cannot use its key to sign for another endpoint.
func DeriveKey(operator []byte, a Action) (string, error) {
	if a.Metadata == nil || a.Metadata.Binding == nil || !a.Metadata.Binding.DerivedKey {
		return "", fmt.Errorf("the action %s has no key of its own; its binding needs key: derived", a.Name)
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
