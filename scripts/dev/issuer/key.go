package issuer

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFile is the name of the key within OpenKey's directory: PKCS #8 in PEM, readable by its owner alone.
const KeyFile = "issuer-key.pem"

const keyBits = 2048

// NewKey makes a key that lives in memory only.
func NewKey() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) }

// KeyID names the key in tokens and in the key set: the start of the digest of its public half.
func KeyID(key *rsa.PrivateKey) string {
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&key.PublicKey))
	return hex.EncodeToString(sum[:8])
}

// OpenKey reads the key kept in the directory, and makes it on first use, so that tokens outlive a restart. Of several
// processes that do so at once one makes the key, and all get the same.
func OpenKey(dir string) (*rsa.PrivateKey, error) {
	path := filepath.Join(dir, KeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(dir, path); err != nil {
			return nil, fmt.Errorf("issuer: make the signing key: %w", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("issuer: read the signing key: %w", err)
	}
	return parseKey(path, text)
}

func parseKey(path string, text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("issuer: %s holds no PEM; delete it to have a new key made", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("issuer: %s cannot be read; delete it to have a new key made: %w", path, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("issuer: %s is not an RSA key; delete it to have a new key made", path)
	}
	return key, nil
}

// makeKey writes beside the path and then links: a half-written key is never seen, and an existing one never replaced.
func makeKey(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := NewKey()
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, KeyFile+".*") // CreateTemp makes it 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
