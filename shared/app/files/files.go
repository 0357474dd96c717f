// Package files has the parts that store and read uploaded files.
package files

import (
	"context"
	"sync"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/objects"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Part reads files, and stores them in a program that serves all functions, if there is a store of objects
// ([objects.Open]). Uploads is the same for the function that only stores files.
var (
	Part    = app.Part{Name: "files", Needs: config.Files, Open: open}
	Uploads = app.Part{Name: "uploads", Needs: config.Files, Open: open}
)

func open(_ context.Context, b *app.Builder) error {
	store := objects.Open(b.Config)
	if store == nil {
		return nil
	}
	cfg := tokenkey.Config{KMSKey: b.Config.TokenKMSKey, Keyset: b.Config.TokenKey.Reveal(), Dir: b.Config.DataDir}
	sealed := blob.Sealed{Objects: store, Cipher: &cipher{open: sync.OnceValues(func() (blob.Cipher, error) {
		return tokenkey.Open(context.Background(), cfg)
	})}}
	b.Env.Files, b.API.Records.Files = sealed, sealed
	return nil
}

// cipher reads its key when it is first used: few requests of a function have a file.
type cipher struct {
	open func() (blob.Cipher, error)
}

// EncryptWithContext implements [blob.Cipher].
func (c *cipher) EncryptWithContext(ctx context.Context, plaintext, associated []byte) ([]byte, error) {
	key, err := c.open()
	if err != nil {
		return nil, err
	}
	return key.EncryptWithContext(ctx, plaintext, associated)
}

// DecryptWithContext implements [blob.Cipher].
func (c *cipher) DecryptWithContext(ctx context.Context, ciphertext, associated []byte) ([]byte, error) {
	key, err := c.open()
	if err != nil {
		return nil, err
	}
	return key.DecryptWithContext(ctx, ciphertext, associated)
}
