package decision

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

// File is the name of the key file in DATA_DIR. It has 32 bytes in base64, and is readable only by its owner.
const File = "decision-key"

// Key is a private key in memory.
type Key struct{ private ed25519.PrivateKey }

// NewKey returns the key with the seed of 32 bytes.
func NewKey(seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, errors.New("decision: the key is not 32 bytes")
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Local reads the key in the file of the directory, and creates one on first use. If several processes do so at once,
// one creates the key and all use it.
func Local(dir, file string) (Key, error) {
	seed, err := keyfile.Seed(dir, file)
	if err != nil {
		return Key{}, fmt.Errorf("decision: %w", err)
	}
	return NewKey(seed)
}

// ID returns the thumbprint of the public key (RFC 7638).
func (k Key) ID(context.Context) (string, error) { return KeyID(k.Public()), nil }

// Sign implements [Signer].
func (k Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

// Public returns the public half.
func (k Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Ring returns the ring of a deployment that signs with this key. The signatures of earlier keys count too.
func (k Key) Ring(deployment string, earlier ...Key) *Ring {
	keys := map[string]ed25519.PublicKey{}
	for _, one := range append(earlier, k) {
		keys[KeyID(one.Public())] = one.Public()
	}
	return NewRing(deployment, keys, k)
}

// KeyID returns the thumbprint of a public key (RFC 7638).
func KeyID(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
