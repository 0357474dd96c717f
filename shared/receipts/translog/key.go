package translog

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

// The names of the log's key and folder in DATA_DIR.
const (
	KeyFile   = "log-key"
	FolderDir = "log"
)

// Key is a private key in memory.
type Key struct{ private ed25519.PrivateKey }

// LocalKey reads the key in the directory, and creates one on first use.
func LocalKey(dir string) (Key, error) {
	seed, err := keyfile.Seed(dir, KeyFile)
	if err != nil {
		return Key{}, fmt.Errorf("translog: %w", err)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Public implements [Signer].
func (k Key) Public(context.Context) (ed25519.PublicKey, error) {
	return k.private.Public().(ed25519.PublicKey), nil
}

// Sign implements [Signer].
func (k Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

// Origin returns the name of the log that has this key and is in a folder. No other log has the same name.
func (k Key) Origin() string {
	sum := sha256.Sum256(k.private.Public().(ed25519.PublicKey))
	return "localhost/countersign-" + hex.EncodeToString(sum[:8])
}
