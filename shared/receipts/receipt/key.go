package receipt

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// A Key is a public Ed25519 key as a JWK (RFC 8037). Its ID is its thumbprint (RFC 7638), so that no other key can have
// the same ID.
type Key struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	X         string `json:"x"`   // 32 bytes in base64url
	ID        string `json:"kid"`
	Use       string `json:"use,omitempty"` // sig
	Algorithm string `json:"alg,omitempty"` // EdDSA
}

// Keys are the present and earlier public keys for receipts, as a JWK Set. Removing a key invalidates every receipt
// that it has signed.
type Keys struct {
	Keys []Key `json:"keys"`
}

// Limits of a set of keys.
const (
	MaxKeys     = 50
	maxKeysSize = 64 << 10
)

// KeyOf returns the JWK of a public key.
func KeyOf(public ed25519.PublicKey) Key {
	x := encode(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return Key{Type: "OKP", Curve: "Ed25519", X: x, ID: encode(sum[:]), Use: "sig", Algorithm: "EdDSA"}
}

// public returns the key's bytes, or an error if the JWK is invalid.
func (k Key) public() (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
	if err != nil || len(b) != ed25519.PublicKeySize || k.Type != "OKP" || k.Curve != "Ed25519" {
		return nil, errors.New("a key is not a public Ed25519 key (kty OKP, crv Ed25519)")
	}
	if KeyOf(b).ID != k.ID {
		return nil, errors.New("the kid of a key is not its thumbprint (RFC 7638)")
	}
	return b, nil
}

// ParseKeys parses a JWK Set of 1 to MaxKeys public Ed25519 keys. It refuses private keys, and ignores unknown members,
// as RFC 7517 requires.
func ParseKeys(text []byte) (Keys, error) {
	var all Keys
	var private struct {
		Keys []struct {
			D *string `json:"d"`
		} `json:"keys"`
	}
	if len(text) > maxKeysSize || json.Unmarshal(text, &all) != nil || json.Unmarshal(text, &private) != nil {
		return Keys{}, errors.New("receipt: expected a JWK Set of at most 64 KiB")
	}
	if len(all.Keys) == 0 || len(all.Keys) > MaxKeys {
		return Keys{}, fmt.Errorf("receipt: expected a JWK Set of 1 to %d keys", MaxKeys)
	}
	for i, k := range all.Keys {
		if private.Keys[i].D != nil {
			return Keys{}, errors.New("receipt: a key has its private half (d), which must never be published")
		}
		if _, err := k.public(); err != nil {
			return Keys{}, fmt.Errorf("receipt: %w", err)
		}
	}
	return all, nil
}

// With returns the keys together with more, and whether they contained more already.
func (k Keys) With(more Key) (all Keys, had bool) {
	for _, one := range k.Keys {
		if one.ID == more.ID {
			return k, true
		}
	}
	return Keys{append(append([]Key{}, k.Keys...), more)}, false
}

// find returns the key with the ID.
func (k Keys) find(id string) (ed25519.PublicKey, bool) {
	for _, one := range k.Keys {
		if one.ID == id {
			public, err := one.public()
			return public, err == nil
		}
	}
	return nil, false
}

// Private is a private key in memory.
type Private struct{ key ed25519.PrivateKey }

// ParsePrivate parses RECEIPT_KEY: the 32 bytes of an Ed25519 private key (RFC 8032) in base64. The error contains
// nothing of the text.
func ParsePrivate(text string) (Private, error) {
	seed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace([]byte(text))))
	if err != nil || len(seed) != ed25519.SeedSize {
		return Private{}, errors.New("receipt: the key is not 32 bytes in base64")
	}
	return NewPrivate(seed), nil
}

// NewPrivate returns the key with the seed of 32 bytes.
func NewPrivate(seed []byte) Private { return Private{ed25519.NewKeyFromSeed(seed)} }

// Public returns the public half.
func (p Private) Public(context.Context) (Key, error) {
	return KeyOf(p.key.Public().(ed25519.PublicKey)), nil
}

// Sign returns the signature of data.
func (p Private) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(p.key, data), nil
}
