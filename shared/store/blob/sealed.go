package blob

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Cipher encrypts, like the tokens of linked accounts (shared/accounts/tokenkey).
type Cipher interface {
	EncryptWithContext(ctx context.Context, plaintext, associated []byte) ([]byte, error)
	DecryptWithContext(ctx context.Context, ciphertext, associated []byte) ([]byte, error)
}

// Sealed is a store whose objects are encrypted. An object can be opened only under its own name, and the name contains
// the owner and the content's hash: a copy in another place is useless.
type Sealed struct {
	Objects Store
	Cipher  Cipher
}

// CodeKey is the code of the error for a file that could not be encrypted or decrypted.
const CodeKey fault.Code = "token_key"

// Create implements [Store]. It encrypts the bytes.
func (s Sealed) Create(ctx context.Context, name string, data []byte) error {
	if err := Check(name, data); err != nil {
		return err
	}
	sealed, err := s.Cipher.EncryptWithContext(ctx, data, purpose(name))
	if err != nil {
		return unreadable(err)
	}
	return s.Objects.Create(ctx, name, sealed)
}

// Read implements [Store]. It decrypts the bytes.
func (s Sealed) Read(ctx context.Context, name string) ([]byte, error) {
	sealed, err := s.Objects.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := s.Cipher.DecryptWithContext(ctx, sealed, purpose(name))
	if err != nil {
		return nil, unreadable(err)
	}
	return data, nil
}

// Delete implements [Store].
func (s Sealed) Delete(ctx context.Context, name string) error { return s.Objects.Delete(ctx, name) }

// purpose is the associated data of the encryption.
func purpose(name string) []byte { return []byte("file|" + name) }

// unreadable returns the error for a failed cipher. Tink does not distinguish a wrong key from an unavailable key
// service.
func unreadable(err error) error {
	return fault.New(fault.Tool, CodeKey, "The file could not be decrypted or encrypted. Try again; if it stays "+
		"so, the operator of this service has to look at the key that encrypts files.").Because(errors.New(err.Error()))
}
