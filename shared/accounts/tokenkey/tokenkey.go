// Package tokenkey provides the cipher for users' secrets: refresh tokens, and the keys and passwords of hosts. Its key
// comes from a file, from the environment, or from Cloud KMS. The package is separate from its users, so that programs
// that never decrypt do not link its dependencies.
package tokenkey

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	kms "cloud.google.com/go/kms/apiv1"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

// File is the name of the key file in Local's directory: a Tink keyset in JSON, readable only by its owner.
const File = "token-key.json"

// Local reads the key in the directory, and creates one (AES-256-GCM) on first use. If several processes do so at once,
// one creates the key and all use it.
func Local(dir string) (tink.AEADWithContext, error) {
	text, err := keyfile.Read(dir, File, writeKey)
	if err != nil {
		return nil, fmt.Errorf("tokenkey: %w", err)
	}
	cipher, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, File), err)
	}
	return cipher, nil
}

// Parse parses TOKEN_KEY: a Tink keyset of AEAD keys (tinkey create-keyset --key-template AES256_GCM) in JSON, or the
// same in base64. The first key encrypts and all keys decrypt, so keys can be rotated. The error contains nothing of
// the text.
func Parse(text string) (tink.AEADWithContext, error) {
	handle, err := read(text)
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, errors.New("tokenkey: the token key is a Tink keyset, but not one for AEAD, such as AES256_GCM")
	}
	return local{primitive}, nil
}

func read(text string) (*keyset.Handle, error) {
	content := []byte(strings.TrimSpace(text))
	if decoded, err := base64.StdEncoding.DecodeString(string(content)); err == nil {
		content = decoded
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, errors.New("tokenkey: the token key is not a Tink keyset in JSON (or that in base64)")
	}
	return handle, nil
}

// KMS returns a cipher that encrypts with a new AES-256-GCM key each time. The Cloud KMS key encrypts that key. key has
// the form projects/P/locations/L/keyRings/R/cryptoKeys/K, with or without the prefix gcp-kms://.
func KMS(ctx context.Context, key string, opts ...option.ClientOption) (tink.AEADWithContext, error) {
	name := strings.TrimPrefix(key, "gcp-kms://")
	if parts := strings.Split(name, "/"); len(parts) != 8 || parts[0] != "projects" || parts[6] != "cryptoKeys" {
		return nil, fmt.Errorf("tokenkey: %q is not projects/P/locations/L/keyRings/R/cryptoKeys/K", key)
	}
	client, err := kms.NewKeyManagementClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("tokenkey: Cloud KMS: %w", err)
	}
	return aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), kmsKey{client, name})
}

// Config locates the key: in Cloud KMS (KMS), in a text (Parse), or else in a directory (Local).
type Config struct {
	KMSKey string // TOKEN_KMS_KEY
	Keyset string // TOKEN_KEY, a secret
	Dir    string // DATA_DIR
}

// Open returns the cipher with the key from KMSKey, Keyset or Dir, whichever is set first.
func Open(ctx context.Context, cfg Config) (tink.AEADWithContext, error) {
	switch {
	case cfg.KMSKey != "":
		return KMS(ctx, cfg.KMSKey)
	case cfg.Keyset != "":
		return Parse(cfg.Keyset)
	}
	return Local(cfg.Dir)
}

// local is a key in memory. It needs no context.
type local struct{ tink.AEAD }

// EncryptWithContext implements [tink.AEADWithContext].
func (l local) EncryptWithContext(_ context.Context, plaintext, associated []byte) ([]byte, error) {
	return l.Encrypt(plaintext, associated)
}

// DecryptWithContext implements [tink.AEADWithContext].
func (l local) DecryptWithContext(_ context.Context, ciphertext, associated []byte) ([]byte, error) {
	return l.Decrypt(ciphertext, associated)
}

func writeKey(w io.Writer) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return err
	}
	return insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(w))
}
