// Package receiptkey provides the key that signs receipts: from the environment, from Cloud KMS, or on one machine from
// a file. The package is separate from its users, so that programs that never sign do not link its dependencies.
package receiptkey

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/base/keyfile"
	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
)

// File is the name of the key file in DATA_DIR. It has the content of RECEIPT_KEY and is readable only by its owner.
const File = "receipt-key"

// Config locates the key: in Cloud KMS, in a text, or else in a directory.
type Config struct {
	KMSKey string // RECEIPT_KMS_KEY
	Key    string // RECEIPT_KEY, a secret
	Dir    string // DATA_DIR
}

// Open returns the signer with the key from KMSKey, Key or Dir, whichever is set first.
func Open(ctx context.Context, cfg Config) (receipt.Signer, error) {
	switch {
	case cfg.KMSKey != "":
		key, err := kmskey.Open(ctx, cfg.KMSKey)
		return KMS{key}, err
	case cfg.Key != "":
		return receipt.ParsePrivate(cfg.Key)
	}
	return Local(cfg.Dir)
}

// KMS signs receipts with a key of Cloud KMS.
type KMS struct{ *kmskey.Key }

// Public returns the key's public half. It asks Cloud KMS once.
func (k KMS) Public(ctx context.Context) (receipt.Key, error) {
	public, err := k.Key.Public(ctx)
	if err != nil {
		return receipt.Key{}, err
	}
	return receipt.KeyOf(public), nil
}

// Local reads the key in the directory, and creates one on first use. If several processes do so at once, one creates
// the key and all use it.
func Local(dir string) (receipt.Signer, error) {
	seed, err := keyfile.Seed(dir, File)
	if err != nil {
		return nil, fmt.Errorf("receiptkey: %w", err)
	}
	return receipt.NewPrivate(seed), nil
}
