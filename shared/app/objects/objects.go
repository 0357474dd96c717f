// Package objects is the part that deletes the objects of uploaded files. It cannot read them: it has no key.
package objects

import (
	"context"
	"path/filepath"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/folder"
	"github.com/countersign-run/countersign/shared/store/blob/gcs"
)

// Part lets the sweep delete objects.
var Part = app.Part{Name: "objects", Open: func(_ context.Context, b *app.Builder) error {
	b.API.Records.Files = Open(b.Config)
	return nil
}}

// Open returns the store of the objects: the bucket in FILES_BUCKET, or a folder beside the embedded store. It returns
// nil if there is neither. It sends no request.
func Open(cfg config.Config) blob.Store {
	switch {
	case cfg.FilesBucket != "" && cfg.StorageEmulator != "":
		return gcs.New(cfg.FilesBucket, option.WithEndpoint("http://"+cfg.StorageEmulator+"/storage/v1/"),
			option.WithoutAuthentication())
	case cfg.FilesBucket != "":
		return gcs.New(cfg.FilesBucket)
	case cfg.Store == "embedded":
		return folder.New(filepath.Join(cfg.DataDir, "files"))
	}
	return nil
}
