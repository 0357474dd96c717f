package terminal

import (
	"context"
	"errors"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Vault seals the secrets of hosts: private keys and passwords. A sealed secret can be opened only for its user and
// host, so a copy in another document is useless.
type Vault struct {
	AEAD tink.AEADWithContext // shared/accounts/tokenkey
}

// Seal returns the secret in the form in which it is stored. Its error is ToolExecutionError token_key.
func (v Vault) Seal(ctx context.Context, uid, hostID string, secret []byte) ([]byte, error) {
	sealed, err := v.AEAD.EncryptWithContext(ctx, secret, purpose(uid, hostID))
	if err != nil {
		return nil, unreadable(err)
	}
	return sealed, nil
}

// Open returns the host's secret: a private key in OpenSSH's form without a passphrase, or a password. Its error is
// ToolExecutionError token_key.
func (v Vault) Open(ctx context.Context, h Host) ([]byte, error) {
	secret, err := v.AEAD.DecryptWithContext(ctx, h.Secret, purpose(h.UID, h.ID))
	if err != nil {
		return nil, unreadable(err)
	}
	return secret, nil
}

// purpose is the associated data of the encryption.
func purpose(uid, hostID string) []byte { return []byte(uid + "|host|" + hostID) }

// unreadable returns the error for a failed cipher. Tink does not distinguish a wrong key from an unavailable key
// service. The host was not contacted.
func unreadable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_key",
		"The host's key or password could not be decrypted or encrypted. Try again; if it stays so, delete the host "+
			"and add it again.").Because(errors.New(err.Error())))
}
