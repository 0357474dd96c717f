package gcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/blob/blobtest"
	"github.com/countersign-run/countersign/shared/store/blob/gcs"
	"github.com/countersign-run/countersign/shared/testkit/gcsserver"
)

func TestBucket(t *testing.T) {
	server, n := gcsserver.Start(t), atomic.Int64{}
	blobtest.Run(t, func(testing.TB) blob.Store {
		return gcs.New(server.Bucket(fmt.Sprintf("files-%d", n.Add(1))), server.Client(nil)...)
	})
}

// wire counts the requests of a client, and answers some of them itself.
type wire struct {
	mu     sync.Mutex
	sent   []string
	answer func(n int, req *http.Request) (*http.Response, error) // of the nth request, from 1; nil, nil: the server's
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent = append(w.sent, req.Method+" "+strings.SplitN(req.URL.Path, "/b/", 2)[0])
	n := len(w.sent)
	w.mu.Unlock()
	if w.answer != nil {
		if res, err := w.answer(n, req); res != nil || err != nil {
			return res, err
		}
	}
	return http.DefaultTransport.RoundTrip(req)
}

func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

func status(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body))}
}

// TestRoundTrips has the requests of each method: one, whatever its result and the size of the object. A call that is
// refused locally sends none, and making the client sends none.
func TestRoundTrips(t *testing.T) {
	server, w := gcsserver.Start(t), &wire{}
	b := gcs.New(server.Bucket("files"), server.Client(w)...)
	large := bytes.Repeat([]byte("x"), blob.MaxBytes)
	name, missing := blobtest.Object("ada", large, 1), blobtest.Object("ada", large, 2)
	for what, c := range map[string]struct {
		do   func(ctx context.Context) error
		want string
	}{
		"create":  {func(ctx context.Context) error { return b.Create(ctx, name, large) }, "[POST /upload/storage/v1]"},
		"refused": {func(ctx context.Context) error { return errOf(b.Read(ctx, "x")) }, "[]"},
		"missing": {func(ctx context.Context) error { return errOf(b.Read(ctx, missing)) }, "[GET /storage/v1]"},
		"gone":    {func(ctx context.Context) error { return b.Delete(ctx, missing) }, "[DELETE /storage/v1]"},
	} {
		_ = c.do(t.Context())
		if got := fmt.Sprint(w.take()); got != c.want {
			t.Errorf("%s sends %s; want %s", what, got, c.want)
		}
	}
	if err := errors.Join(b.Create(t.Context(), name, large), errOf(b.Read(t.Context(), name)),
		b.Delete(t.Context(), name)); err != nil {
		t.Fatal(err)
	}
	if got := len(w.take()); got != 3 {
		t.Errorf("create again, read and delete send %d requests; want 3", got)
	}
}

func errOf(_ []byte, err error) error { return err }

// TestRepeats has a server that fails at first: the call is repeated, and a lost answer to a creation is no conflict.
func TestRepeats(t *testing.T) {
	server := gcsserver.Start(t)
	data := []byte("once")
	for n, fail := range []func(*http.Request) (*http.Response, error){
		func(*http.Request) (*http.Response, error) { return status(http.StatusServiceUnavailable, ""), nil },
		func(*http.Request) (*http.Response, error) { return status(http.StatusTooManyRequests, ""), nil },
		func(req *http.Request) (*http.Response, error) { // done, and the answer is lost
			res, err := http.DefaultTransport.RoundTrip(req)
			if err == nil {
				res.Body.Close()
			}
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		},
	} {
		w := &wire{answer: func(n int, req *http.Request) (*http.Response, error) {
			if n > 1 {
				return nil, nil
			}
			return fail(req)
		}}
		b := gcs.New(server.Bucket(fmt.Sprintf("files-%d", n)), server.Client(w)...)
		name := blobtest.Object("ada", data, 1)
		if err := b.Create(t.Context(), name, data); err != nil {
			t.Errorf("%d: create: %v", n, err)
		}
		w.take()
		if got, err := b.Read(t.Context(), name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d: read: %q, %v", n, got, err)
		}
		w.take()
		if err := b.Delete(t.Context(), name); err != nil {
			t.Errorf("%d: delete: %v", n, err)
		}
		if got := len(w.take()); got != 2 {
			t.Errorf("%d: the failed deletion took %d requests; want 2", n, got)
		}
	}
}

// TestFailures has errors that stay: those that a retry may fix are sent three times and say so, the others once. No
// message contains the server's text. A missing bucket is not a missing object.
func TestFailures(t *testing.T) {
	const secret = "the text of the server"
	for _, c := range []struct {
		status      int
		body        string
		unavailable bool
	}{
		{http.StatusServiceUnavailable, secret, true},
		{http.StatusForbidden, secret, false},
		{http.StatusNotFound, `{"error":{"code":404,"message":"The specified bucket does not exist. ` + secret + `"}}`,
			false},
	} {
		w := &wire{answer: func(int, *http.Request) (*http.Response, error) { return status(c.status, c.body), nil }}
		b := gcs.New("files", (&gcsserver.Server{URL: "http://127.0.0.1:1"}).Client(w)...)
		name := blobtest.Object("ada", nil, 1)
		for what, do := range map[string]func() error{
			"create": func() error { return b.Create(t.Context(), name, nil) },
			"read":   func() error { return errOf(b.Read(t.Context(), name)) },
			"delete": func() error { return b.Delete(t.Context(), name) },
		} {
			err := do()
			if err == nil || errors.Is(err, blob.ErrGone) || errors.Is(err, store.ErrUnavailable) != c.unavailable ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("%d: %s: %v", c.status, what, err)
			}
			want := 1
			if c.unavailable {
				want = 3
			}
			if got := len(w.take()); got != want {
				t.Errorf("%d: %s took %d requests; want %d", c.status, what, got, want)
			}
		}
	}
}
