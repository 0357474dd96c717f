// Package gcs stores objects in a bucket of Cloud Storage.
//
// It uses the generated client of the JSON API (google.golang.org/api/storage/v1), which adds 0.2 MB to a function.
// cloud.google.com/go/storage adds 17 MB, because it always links its gRPC transport with xDS. Its further features are
// of no use here (resumable and parallel transfers, streamed appends): an object has at most 16 MiB, in one request.
package gcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	storage "google.golang.org/api/storage/v1"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
)

const (
	callTimeout = 30 * time.Second // of one call with its retries
	attempts    = 3
	firstPause  = 100 * time.Millisecond
)

// Bucket is a [blob.Store].
type Bucket struct {
	name string
	opts []option.ClientOption

	mu     sync.Mutex
	client *storage.Service // nil until it is first used
}

// New returns the store in the bucket. The first use looks for the credentials and makes the client.
func New(bucket string, opts ...option.ClientOption) *Bucket {
	return &Bucket{name: bucket, opts: opts}
}

// Create implements [blob.Store] in one request. The precondition keeps an attempt that is repeated, because its answer
// was lost, from writing the object a second time.
func (b *Bucket) Create(ctx context.Context, name string, data []byte) error {
	if err := blob.Check(name, data); err != nil {
		return err
	}
	return b.call(ctx, "create", func(ctx context.Context, s *storage.Service) error {
		object := &storage.Object{Name: name, ContentType: "application/octet-stream", CacheControl: "no-store"}
		_, err := s.Objects.Insert(b.name, object).IfGenerationMatch(0).Fields("name").
			Media(bytes.NewReader(data), googleapi.ChunkSize(0)).Context(ctx).Do()
		if code(err) == http.StatusPreconditionFailed {
			return nil
		}
		return err
	})
}

// Read implements [blob.Store] in one request.
func (b *Bucket) Read(ctx context.Context, name string) (data []byte, err error) {
	if err := blob.Check(name, nil); err != nil {
		return nil, err
	}
	err = b.call(ctx, "read", func(ctx context.Context, s *storage.Service) error {
		res, err := s.Objects.Get(b.name, name).Context(ctx).Download()
		if err != nil {
			return err
		}
		defer res.Body.Close()
		data, err = read(res)
		return err
	})
	if isGone(err) {
		return nil, blob.ErrGone
	}
	if err == nil {
		err = blob.Check(name, data)
	}
	return data, err
}

// read reads the body, into a buffer of the right size if the server states it.
func read(res *http.Response) ([]byte, error) {
	var buf bytes.Buffer
	if n := res.ContentLength; n > 0 && n <= blob.MaxBytes {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(res.Body, blob.MaxBytes+1))
	return buf.Bytes(), err
}

// Delete implements [blob.Store] in one request.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := blob.Check(name, nil); err != nil {
		return err
	}
	err := b.call(ctx, "delete", func(ctx context.Context, s *storage.Service) error {
		return s.Objects.Delete(b.name, name).Context(ctx).Do()
	})
	if isGone(err) {
		return nil
	}
	return err
}

// call makes the client if necessary, sends a request within the time limit, and repeats it if the server was
// unavailable.
func (b *Bucket) call(ctx context.Context, method string, do func(context.Context, *storage.Service) error) error {
	if cause := ctx.Err(); cause != nil {
		return store.Interrupted("gcs: "+method, cause)
	}
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := b.open(ctx)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := do(limited, client)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return store.Interrupted("gcs: "+method, ctx.Err())
		case isTransient(err) && try < attempts && wait.Backoff(limited, firstPause, try) == nil:
		default:
			return &callError{method, code(err), isTransient(err), err}
		}
	}
}

// open returns the client. A failure is not kept: the next use tries again.
func (b *Bucket) open(ctx context.Context) (*storage.Service, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client == nil {
		opts := append([]option.ClientOption{option.WithScopes(storage.DevstorageReadWriteScope)}, b.opts...)
		client, err := storage.NewService(context.WithoutCancel(ctx), opts...)
		if err != nil {
			return nil, fmt.Errorf("gcs: Cloud Storage: %w", err)
		}
		b.client = client
	}
	return b.client, nil
}

// callError names the method and the status of a failed call. Its text leaves out the server's text. Unwrap returns the
// server's error, for the log.
type callError struct {
	method    string
	status    int // 0: no answer came
	transient bool
	cause     error
}

func (e *callError) Error() string {
	if e.status == 0 {
		return "gcs: " + e.method + ": no answer from Cloud Storage"
	}
	return fmt.Sprintf("gcs: %s: Cloud Storage answered %d", e.method, e.status)
}

func (e *callError) Unwrap() []error {
	if e.transient {
		return []error{store.ErrUnavailable, e.cause}
	}
	return []error{e.cause}
}

// code returns the HTTP status of the server's error, or 0.
func code(err error) int {
	var e *googleapi.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// isTransient reports whether a repeated request may succeed: the server says so, or no whole answer came
// (docs.cloud.google.com/storage/docs/retry-strategy).
func isTransient(err error) bool {
	c := code(err)
	return c == 0 || c == http.StatusRequestTimeout || c == http.StatusTooManyRequests || c >= 500
}

// isGone reports whether the object is missing. A missing bucket is another thing: it is a mistake in the settings, and
// must not make files look deleted.
func isGone(err error) bool {
	var e *googleapi.Error
	return errors.As(err, &e) && e.Code == http.StatusNotFound &&
		!strings.Contains(strings.ToLower(e.Message+e.Body), "bucket does not exist")
}
