// Package translog is the part that publishes the log of the audit's hashes.
package translog

import (
	"context"
	"errors"
	"path/filepath"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store/blob/gcs"
)

// Part publishes the log to LOG_BUCKET with LOG_KMS_KEY. With the embedded store, the defaults are a folder in DATA_DIR
// and a key that is created on first use. With Firestore and without a bucket, it logs a warning.
var Part = With()

// With returns the part with options for the client of Cloud KMS.
func With(opts ...option.ClientOption) app.Part {
	return app.Part{Name: "log", Open: func(ctx context.Context, b *app.Builder) error {
		cfg := b.Config
		files := Open(cfg)
		if files == nil {
			b.Log.Warn("the audit has no log, so someone who can write to the database can write another audit; set "+
				"LOG_BUCKET and LOG_KMS_KEY", "page", "shared/receipts/translog/README.md")
			return nil
		}
		p := &translog.Publisher{Store: b.Store, Objects: files, Keys: cfg.LogPublicKeys, Now: b.Now, Log: b.Log,
			Metrics: b.Env.Metrics}
		if err := sign(ctx, b, p, opts); err != nil {
			return err
		}
		if cfg.LogBucket != "" {
			p.Origin = translog.BucketOrigin(cfg.LogBucket)
		}
		b.API.AuditLog = p
		return nil
	}}
}

// sign adds the key, and the name of a log that only this key has.
func sign(ctx context.Context, b *app.Builder, p *translog.Publisher, opts []option.ClientOption) error {
	switch cfg := b.Config; {
	case cfg.LogKMSKey != "":
		key, err := kmskey.Open(ctx, cfg.LogKMSKey, opts...)
		if err != nil {
			return err
		}
		b.Closes(key)
		p.Signer = key
	case cfg.Store == "embedded":
		key, err := translog.LocalKey(cfg.DataDir)
		if err != nil {
			return err
		}
		p.Signer, p.Origin = key, key.Origin()
	default:
		return errors.New("LOG_KMS_KEY: a key of Cloud KMS is required, because LOG_BUCKET is set")
	}
	return nil
}

// Open returns the files of the log: the bucket in LOG_BUCKET, or a folder beside the embedded store. It returns nil if
// there is neither. It sends no request.
func Open(cfg config.Config) translog.Objects {
	switch {
	case cfg.LogBucket != "" && cfg.StorageEmulator != "":
		return gcs.NewFiles(cfg.LogBucket, option.WithEndpoint("http://"+cfg.StorageEmulator+"/storage/v1/"),
			option.WithoutAuthentication())
	case cfg.LogBucket != "":
		return gcs.NewFiles(cfg.LogBucket)
	case cfg.Store == "embedded":
		return translog.NewFolder(filepath.Join(cfg.DataDir, translog.FolderDir))
	}
	return nil
}
