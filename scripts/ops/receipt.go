package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/receipts/receiptkey"
)

// receiptOf verifies a receipt file offline. It prints the verdict on one line, and sets the exit status.
func receiptOf(flags *flag.FlagSet) runFunc {
	from := flags.String("keys", "", "a `FILE` with public keys (a JWK Set), instead of RECEIPT_JWKS")
	return func(_ context.Context, o *operator, args []string) error {
		if args[0] != "verify" {
			return errors.New("usage: receipt verify FILE")
		}
		keys, err := o.publicKeys(*from)
		if err != nil {
			return err
		}
		data, err := readFile(args[1], receipt.MaxFile+1)
		if err != nil {
			return err
		}
		verdict, why := receipt.Verify(data, keys)
		if err := o.printf("%s: %s", verdict, why); err != nil || verdict == receipt.True {
			return err
		}
		return errFailed
	}
}

// receiptKeys prints the value for RECEIPT_JWKS: its present keys, and the public half of the signing key.
func receiptKeys(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, _ []string) error {
		cfg, err := config.Load(o.withoutKeys(), config.Store)
		if err != nil {
			return err
		}
		var keys receipt.Keys
		version := o.getenv("RECEIPT_KMS_KEY")
		signs := version != "" || cfg.ReceiptKey.IsSet()
		if !signs || o.getenv("RECEIPT_JWKS") != "" {
			if keys, err = o.publicKeys(""); err != nil {
				return err
			}
		}
		if signs {
			signer, err := receiptkey.Open(ctx, receiptkey.Config{KMSKey: version, Key: cfg.ReceiptKey.Reveal()})
			if err != nil {
				return err
			}
			own, err := signer.Public(ctx)
			if err != nil {
				return err
			}
			keys, _ = keys.With(own)
		}
		text, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		return o.printf("%s", text)
	}
}

// withoutKeys returns an environment without RECEIPT_JWKS and RECEIPT_KMS_KEY. An operator who creates the first key
// has no RECEIPT_JWKS yet.
func (o *operator) withoutKeys() func(string) string {
	return func(name string) string {
		if name == "RECEIPT_JWKS" || name == "RECEIPT_KMS_KEY" {
			return ""
		}
		return o.getenv(name)
	}
}

// publicKeys returns the keys in the file, or else those in RECEIPT_JWKS, or else the public half of the key in
// DATA_DIR.
func (o *operator) publicKeys(file string) (receipt.Keys, error) {
	if file != "" {
		text, err := readFile(file, 64<<10)
		if err != nil {
			return receipt.Keys{}, err
		}
		return receipt.ParseKeys(text)
	}
	cfg, err := config.Load(o.getenv)
	if err != nil {
		return receipt.Keys{}, err
	}
	if cfg.ReceiptJWKS != "" {
		return receipt.ParseKeys([]byte(cfg.ReceiptJWKS))
	}
	text, err := os.ReadFile(filepath.Join(cfg.DataDir, receiptkey.File))
	if errors.Is(err, fs.ErrNotExist) {
		return receipt.Keys{}, errors.New("no public keys: set RECEIPT_JWKS, or use -keys with a copy " +
			"of /.well-known/jwks.json")
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	key, err := receipt.ParsePrivate(string(text))
	if err != nil {
		return receipt.Keys{}, err
	}
	own, err := key.Public(context.Background())
	return receipt.Keys{Keys: []receipt.Key{own}}, err
}

// readFile reads a file of at most the given number of bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, err
}
