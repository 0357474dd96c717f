package gcs

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	storage "google.golang.org/api/storage/v1"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

// Files are the files of a log in a bucket (translog.Objects), under names that others can read.
type Files struct{ bucket *Bucket }

// NewFiles returns the files in the bucket. The first use looks for the credentials and makes the client.
func NewFiles(bucket string, opts ...option.ClientOption) Files { return Files{New(bucket, opts...)} }

// Create stores a file that never changes. If the name exists, the file must have the same bytes.
func (f Files) Create(ctx context.Context, name string, data []byte) error {
	err := f.insert(ctx, name, data, 0)
	if code(err) != http.StatusPreconditionFailed {
		return err
	}
	if old, err := f.Read(ctx, name); err != nil || !bytes.Equal(old, data) {
		return fmt.Errorf("gcs: %s exists with other bytes", name)
	}
	return nil
}

// Replace stores a file that may change, unless another process has replaced the bytes that were read. Nil stands for
// no file.
func (f Files) Replace(ctx context.Context, name string, was, data []byte) error {
	old, generation, err := f.read(ctx, name)
	if err != nil && !isGone(err) {
		return err
	}
	if !bytes.Equal(old, was) {
		return store.ErrConflict
	}
	err = f.insert(ctx, name, data, generation)
	if code(err) == http.StatusPreconditionFailed {
		if now, _, again := f.read(ctx, name); again == nil && bytes.Equal(now, data) {
			return nil // an earlier attempt, whose answer was lost
		}
		return store.ErrConflict
	}
	return err
}

// insert stores a file if it has this generation; 0 means that there is none.
func (f Files) insert(ctx context.Context, name string, data []byte, generation int64) error {
	return f.bucket.call(ctx, "create", func(ctx context.Context, s *storage.Service) error {
		object := &storage.Object{Name: name, ContentType: "application/octet-stream", CacheControl: "no-store"}
		_, err := s.Objects.Insert(f.bucket.name, object).IfGenerationMatch(generation).Fields("name").
			Media(bytes.NewReader(data), googleapi.ChunkSize(0)).Context(ctx).Do()
		return err
	})
}

// Read returns the file's bytes, or [blob.ErrGone].
func (f Files) Read(ctx context.Context, name string) ([]byte, error) {
	data, _, err := f.read(ctx, name)
	if isGone(err) {
		err = blob.ErrGone
	}
	return data, err
}

// read returns the file's bytes with its generation.
func (f Files) read(ctx context.Context, name string) (data []byte, generation int64, err error) {
	err = f.bucket.call(ctx, "read", func(ctx context.Context, s *storage.Service) error {
		res, err := s.Objects.Get(f.bucket.name, name).Context(ctx).Download()
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if generation, err = strconv.ParseInt(res.Header.Get("X-Goog-Generation"), 10, 64); err != nil {
			return fmt.Errorf("gcs: the answer has no generation: %w", err)
		}
		data, err = read(res)
		return err
	})
	return data, generation, err
}

// List returns the sorted names of the files in a folder.
func (f Files) List(ctx context.Context, folder string) (names []string, err error) {
	err = f.bucket.call(ctx, "list", func(ctx context.Context, s *storage.Service) error {
		names = nil
		return s.Objects.List(f.bucket.name).Prefix(folder+"/").Fields("nextPageToken", "items(name)").
			Pages(ctx, func(page *storage.Objects) error {
				for _, o := range page.Items {
					names = append(names, o.Name)
				}
				return nil
			})
	})
	slices.Sort(names)
	return names, err
}
