// Package webpush sends messages to people's browsers, which show them even if no page is open. It implements Web Push
// (RFC 8030), with messages that are encrypted for one browser (RFC 8291) and a server that identifies itself with a
// key (VAPID, RFC 8292).
package webpush

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Sizes of the parts of a subscription.
const (
	MaxEndpoint = 1024 // bytes of a URL; most push services use about 200, one of them 600
	keySize     = 32   // a private key of P-256
	pointSize   = 65   // a public key of P-256, uncompressed
	secretSize  = 16
)

// Encoding is the encoding of keys, here and in browsers.
var Encoding = base64.RawURLEncoding.Strict()

// Decode decodes a key in base64url, as browsers write it, or in standard base64, as other programs do. Padding is
// optional. Surrounding spaces and line breaks are ignored.
func Decode(key string) ([]byte, error) {
	unpadded := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(key), "="), "=")
	return Encoding.DecodeString(strings.NewReplacer("+", "-", "/", "_").Replace(unpadded))
}

// A Subscription is the address at which one browser receives messages, with the keys that encrypt them.
type Subscription struct {
	Endpoint string `json:"endpoint"` // anyone with the endpoint and the server's key can send there
	P256dh   []byte `json:"p256dh,omitempty"`
	Auth     []byte `json:"auth,omitempty"`
}

// Check returns a ValidationError that names the field if the subscription is invalid. The endpoint is a URL from a
// stranger; [Sender]'s client checks what it resolves to for each request.
func (s Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	switch {
	case len(s.Endpoint) > MaxEndpoint:
		return fault.Invalid("endpoint", "%d bytes; the limit is %d", len(s.Endpoint), MaxEndpoint)
	case err != nil || !outbound.Secure(u) || u.Fragment != "":
		return fault.Invalid("endpoint", "expected the address of a push service, with https and without credentials")
	case len(s.Auth) != secretSize:
		return fault.Invalid("keys/auth", "expected %d bytes in base64url", secretSize)
	}
	if _, err := ecdh.P256().NewPublicKey(s.P256dh); err != nil {
		return fault.Invalid("keys/p256dh", "expected a point of P-256: %d bytes in base64url", pointSize)
	}
	return nil
}

// A Key is the server's key. Browsers that have subscribed with its public half accept messages from no other server.
type Key struct{ private *ecdsa.PrivateKey }

// ParseKey parses the 32 bytes of a private key in base64url, the form that other VAPID tools print.
func ParseKey(text string) (Key, error) {
	raw, err := Decode(text)
	if err != nil || len(raw) != keySize {
		return Key{}, errors.New("expected a P-256 private key: 32 bytes in base64url")
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return Key{}, errors.New("not a P-256 private key")
	}
	return Key{private}, nil
}

// ParseKeys parses one or more keys, separated by commas.
func ParseKeys(text string) (keys []Key, err error) {
	for one := range strings.SplitSeq(text, ",") {
		key, err := ParseKey(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// NewKey returns a new private key in the form that [ParseKey] parses.
func NewKey(random io.Reader) (string, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return "", err
	}
	raw, err := private.Bytes()
	return Encoding.EncodeToString(raw), err
}

// Public returns the public half in the form that pages pass to their browsers.
func (k Key) Public() string {
	raw, err := k.private.PublicKey.Bytes()
	if err != nil {
		return "" // cannot happen for a key that was parsed
	}
	return Encoding.EncodeToString(raw)
}
