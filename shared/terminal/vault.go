package terminal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Vault seals the secrets of hosts: private keys and passwords. A sealed secret can be opened only for its user and
// host, and only with the address, the keys and the rules that the user confirmed. A copy in another document is
// therefore useless, and no connection is possible to a host whose document was changed in the store.
type Vault struct {
	AEAD tink.AEADWithContext // shared/accounts/tokenkey
}

// Seal puts the secret into the host, and binds it to the host's other fields. Its error is ToolExecutionError
// token_key.
func (v Vault) Seal(ctx context.Context, h *Host, secret []byte) error {
	h.Bound = true
	sealed, err := v.AEAD.EncryptWithContext(ctx, secret, h.purpose())
	if err != nil {
		return unreadable(err)
	}
	h.Secret = sealed
	return nil
}

// Open returns the host's secret: a private key in OpenSSH's form without a passphrase, or a password. Its error is
// ToolExecutionError token_key.
func (v Vault) Open(ctx context.Context, h Host) ([]byte, error) {
	secret, err := v.AEAD.DecryptWithContext(ctx, h.Secret, h.purpose())
	if err != nil {
		return nil, unreadable(err)
	}
	return secret, nil
}

// purpose returns the associated data of the encryption.
func (h Host) purpose() []byte {
	of := h.UID + "|host|" + h.ID
	if h.Bound {
		of += "|" + h.Confirmed()
	}
	return []byte(of)
}

// Confirmed returns a hash of the values that the user has confirmed: the host's address, the way to reach it, its
// keys, and which commands run there without approval.
func (h Host) Confirmed() string {
	text, _ := json.Marshal(struct { // it always encodes; a new field must be left out of the JSON of older hosts
		Address, Username, Jump string
		Port                    int
		Auth                    AuthKind
		AutoRun                 AutoRun
		Keys                    []HostKey `json:",omitempty"`
		Authorities             []HostKey `json:",omitempty"`
		Revoked                 []HostKey `json:",omitempty"`
		ReadPaths               []string  `json:",omitempty"`
	}{h.Address, h.Username, h.Jump, h.Port, h.Auth, h.AutoRun, h.HostKeys, h.CertAuthorities, h.RevokedKeys,
		h.ReadPaths})
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// unreadable returns the error for a failed cipher. Tink does not distinguish a wrong key from an unavailable key
// service. The host was not contacted.
func unreadable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_key",
		"The host's key or password could not be decrypted or encrypted. Try again; if it stays so, delete the host "+
			"and add it again.").Because(errors.New(err.Error())))
}
