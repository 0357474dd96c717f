// Package receipts is the part that issues receipts.
package receipts

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/receipts/receiptkey"
)

// Part signs with RECEIPT_KEY or RECEIPT_KMS_KEY. If neither is set, it creates a key, except on Cloud Run.
var Part = app.Part{Name: "receipts", Open: open}

func open(ctx context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.OnCloudRun && cfg.ReceiptKMSKey == "" && !cfg.ReceiptKey.IsSet() {
		return nil
	}
	signer, err := receiptkey.Open(ctx, receiptkey.Config{KMSKey: cfg.ReceiptKMSKey, Key: cfg.ReceiptKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return err
	}
	i := issuer{signer: signer}
	if cfg.ReceiptJWKS != "" {
		if i.published, err = receipt.ParseKeys([]byte(cfg.ReceiptJWKS)); err != nil {
			return fmt.Errorf("RECEIPT_JWKS: %w", err)
		}
		if cfg.ReceiptKMSKey == "" { // a KMS key is checked with the first receipt
			err = i.check(ctx)
		}
	}
	b.API.Receipts = i
	return err
}

// issuer signs with one key, and only if its public half is published: otherwise no one could verify the receipt.
type issuer struct {
	signer    receipt.Signer
	published receipt.Keys // empty: only the signer's key
}

func (i issuer) Issue(ctx context.Context, r receipt.Receipt) ([]byte, error) {
	if err := i.check(ctx); err != nil {
		return nil, err
	}
	return receipt.Issue(ctx, i.signer, r)
}

func (i issuer) Keys(ctx context.Context) (receipt.Keys, error) {
	if len(i.published.Keys) > 0 {
		return i.published, nil
	}
	own, err := i.signer.Public(ctx)
	return receipt.Keys{Keys: []receipt.Key{own}}, err
}

func (i issuer) check(ctx context.Context) error {
	if len(i.published.Keys) == 0 {
		return nil
	}
	own, err := i.signer.Public(ctx)
	if err != nil {
		return err
	}
	if _, had := i.published.With(own); !had {
		return errors.New("RECEIPT_JWKS lacks the public half of the key that signs receipts; `ops receipt-keys` " +
			"prints it with them")
	}
	return nil
}
