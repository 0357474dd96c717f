// Package translog is the part that publishes the log of the audit's hashes.
package translog

import (
	"context"
	"path/filepath"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/receipts/translog"
)

// Part publishes the log: with the embedded store to a folder in DATA_DIR, with a key that is created on first use.
var Part = app.Part{Name: "log", Open: func(_ context.Context, b *app.Builder) error {
	if b.Config.Store != "embedded" {
		return nil
	}
	key, err := translog.LocalKey(b.Config.DataDir)
	if err != nil {
		return err
	}
	b.API.AuditLog = &translog.Publisher{Store: b.Store, Signer: key, Origin: key.Origin(), Now: b.Now, Log: b.Log,
		Objects: translog.NewFolder(filepath.Join(b.Config.DataDir, translog.FolderDir)), Metrics: b.Env.Metrics}
	return nil
}}
