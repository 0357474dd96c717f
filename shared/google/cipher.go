package google

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// The associated data say what a ciphertext is for. It opens for nothing else.
func refreshOf(uid string) []byte         { return []byte(uid + "|google") }
func verifierOf(uid, state string) []byte { return []byte(uid + "|google|" + state) }

func (a *Accounts) seal(ctx context.Context, uid, refresh string) ([]byte, error) {
	sealed, err := a.cipher.EncryptWithContext(ctx, []byte(refresh), refreshOf(uid))
	if err != nil {
		return nil, unreadable(err)
	}
	return sealed, nil
}

func (a *Accounts) open(ctx context.Context, l link) (string, error) {
	refresh, err := a.cipher.DecryptWithContext(ctx, l.Refresh, refreshOf(l.UID))
	if err != nil {
		return "", unreadable(err)
	}
	return string(refresh), nil
}

// unreadable does not tell a wrong key from a key service that is down, because Tink does not; so it breaks no link.
func unreadable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_key",
		"The linked account's access could not be decrypted or encrypted. Try again; if it stays so, link it again with %s.",
		ConnectPath).Because(errors.New(err.Error())))
}
