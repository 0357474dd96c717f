package issuer

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

// KeyFile is the name of the key within OpenKey's directory: PKCS #8 in PEM, readable by its owner alone.
const KeyFile = "issuer-key.pem"

const keyBits = 2048

// NewKey returns a new key, kept in memory only.
func NewKey() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) }

// KeyID returns the ID of the key in tokens and in the key set: the start of the digest of its public half.
func KeyID(key *rsa.PrivateKey) string {
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))
	return hex.EncodeToString(sum[:8])
}

// OpenKey returns the key stored in the directory, and creates it on first use, so that tokens survive a restart.
// Concurrent processes get the same key.
func OpenKey(dir string) (*rsa.PrivateKey, error) {
	text, err := keyfile.Read(dir, KeyFile, writeKey)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	return parseKey(filepath.Join(dir, KeyFile), text)
}

func parseKey(path string, text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("issuer: %s contains no PEM; delete it to create a new key", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("issuer: %s cannot be read; delete it to create a new key: %w", path, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("issuer: %s is not an RSA key; delete it to create a new key", path)
	}
	return key, nil
}

func writeKey(w io.Writer) error {
	key, err := NewKey()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return pem.Encode(w, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
