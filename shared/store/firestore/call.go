package firestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
)

const (
	callTimeout = 8 * time.Second // of one call with its retries; users must get an answer within 10 s
	attempts    = 3
	firstPause  = 50 * time.Millisecond
)

// call runs one RPC within the time limit, and retries it if the server was unavailable. A conflict after a failed
// attempt may come from that attempt's own write, so it is reported as ErrUnavailable.
func (s *Store) call(ctx context.Context, method string, rpc func(ctx context.Context) error) error {
	if cause := ctx.Err(); cause != nil {
		return store.Interrupted(method, cause)
	}
	limited, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, s.headers.Copy()), s.timeout)
	defer cancel()
	for try := 1; ; try++ {
		err := rpc(limited)
		if err == nil {
			return nil
		}
		if status.Code(err) == codes.Unavailable && try < attempts && wait.Backoff(limited, firstPause, try) == nil {
			continue
		}
		return wrap(ctx, limited, method, err, try > 1)
	}
}

// callError names the method and the code of a failed call. Its text leaves out the server's text, which may contain
// names and addresses. Unwrap returns the server's error, for the log.
type callError struct {
	method   string
	code     codes.Code
	sentinel error // nil if package store has none for it
	cause    error
}

func (e *callError) Error() string {
	text := fmt.Sprintf("firestore store: %s: %s", e.method, e.code)
	if e.sentinel != nil {
		text += ": " + e.sentinel.Error()
	}
	return text
}

func (e *callError) Unwrap() []error {
	if e.sentinel == nil {
		return []error{e.cause}
	}
	return []error{e.sentinel, e.cause}
}

func wrap(ctx, limited context.Context, method string, err error, repeated bool) error {
	code := codeOf(err)
	failed := &callError{method: method, code: code, cause: err}
	switch {
	case method == "commit" && isConflict(err):
		failed.sentinel = store.ErrConflict
		if repeated {
			failed.sentinel = store.ErrUnavailable
		}
	case ctx.Err() != nil:
		return store.Interrupted(method, ctx.Err())
	case code == codes.DeadlineExceeded && isCallersLimit(ctx, limited):
		return store.Interrupted(method, context.DeadlineExceeded)
	case slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted,
		codes.Internal, codes.Canceled}, code):
		failed.sentinel = store.ErrUnavailable
	}
	return failed
}

// isCallersLimit reports whether the deadline that passed was the caller's own. A server may report a deadline before
// the caller's clock reaches it.
func isCallersLimit(ctx, limited context.Context) bool {
	callers, ok := ctx.Deadline()
	struck, _ := limited.Deadline()
	return ok && callers.Equal(struck)
}

// isConflict reports whether a commit's precondition failed. Only commits have preconditions. For a read, the same
// codes mean that an index or the database is missing.
func isConflict(err error) bool {
	switch status.Code(err) {
	case codes.AlreadyExists, codes.FailedPrecondition, codes.NotFound, codes.Aborted:
		return true
	case codes.InvalidArgument:
		// A version later than the stored one, as after a restore, is an invalid argument that only the text
		// identifies.
		return strings.Contains(status.Convert(err).Message(), "base version")
	}
	return false
}

// codeOf returns err's gRPC code. It returns DeadlineExceeded also if the deadline passed outside of gRPC.
func codeOf(err error) codes.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return status.Code(err)
}

func isClosing(err error) bool { return status.Code(err) == codes.Canceled }
