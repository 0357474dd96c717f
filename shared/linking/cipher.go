package linking

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// The associated data name the purpose of a ciphertext, which cannot be decrypted for any other.
func (p Provider) refreshOf(uid string) []byte         { return []byte(uid + "|" + p.ID) }
func (p Provider) verifierOf(uid, state string) []byte { return []byte(uid + "|" + p.ID + "|" + state) }

func (a *Accounts) seal(ctx context.Context, uid, refresh string) ([]byte, error) {
	sealed, err := a.cipher.EncryptWithContext(ctx, []byte(refresh), a.cfg.refreshOf(uid))
	if err != nil {
		return nil, a.cfg.unreadable(err)
	}
	return sealed, nil
}

func (a *Accounts) unseal(ctx context.Context, l link) (string, error) {
	refresh, err := a.cipher.DecryptWithContext(ctx, l.Refresh, a.cfg.refreshOf(l.UID))
	if err != nil {
		return "", a.cfg.unreadable(err)
	}
	return string(refresh), nil
}

// unreadable returns the error of a decryption that failed. Tink does not distinguish a wrong key from an unavailable
// key service, so the link is not marked broken.
func (p Provider) unreadable(err error) error {
	return tool.Transient(fault.New(fault.Tool, "token_key",
		"The linked account's access could not be decrypted or encrypted. Try again; if it stays so, link it "+
			"again with %s.",
		p.ConnectPath()).Because(errors.New(err.Error())))
}
