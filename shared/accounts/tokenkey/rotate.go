package tokenkey

import (
	"bytes"
	"errors"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Rotate returns the keyset of text with a new key that encrypts from now on. The earlier keys still decrypt.
func Rotate(text string) (string, error) {
	return changed(text, func(m *keyset.Manager, _ *keyset.Handle) error {
		id, err := m.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		return m.SetPrimary(id)
	})
}

// Retire returns the keyset of text with only the key that encrypts. Tokens that a removed key has encrypted can no
// longer be read, so their users must link their accounts again.
func Retire(text string) (string, error) {
	return changed(text, func(m *keyset.Manager, h *keyset.Handle) error {
		info := h.KeysetInfo()
		for _, k := range info.KeyInfo {
			if k.KeyId == info.PrimaryKeyId {
				continue
			}
			if err := m.Delete(k.KeyId); err != nil {
				return err
			}
		}
		return nil
	})
}

func changed(text string, change func(*keyset.Manager, *keyset.Handle) error) (string, error) {
	handle, err := read(text)
	if err != nil {
		return "", err
	}
	m := keyset.NewManagerFromHandle(handle)
	if err := change(m, handle); err != nil {
		return "", errors.New("tokenkey: Tink cannot change the keyset")
	}
	next, err := m.Handle()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = insecurecleartextkeyset.Write(next, keyset.NewJSONWriter(&out))
	return out.String(), err
}
