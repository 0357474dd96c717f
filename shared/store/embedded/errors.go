package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/countersign-run/countersign/shared/store"
)

// wrap maps the error of a statement to an error of the port. ctx's own error stays visible; a locked file, a full disk
// and a failing disk become ErrUnavailable. SQLite's texts contain names of tables and columns, but no content.
func wrap(ctx context.Context, method string, err error) error {
	if errors.Is(err, store.ErrConflict) {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return store.Interrupted(method, cause)
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_NOMEM:
		return fmt.Errorf("embedded store: %s: %w: %w", method, store.ErrUnavailable, err)
	}
	return fmt.Errorf("embedded store: %s: %w", method, err)
}

// withRetries retries while another process holds the file's lock, for up to most. SQLite's own busy handler ignores
// ctx, and does not run while a new file is switched to a write-ahead log.
func withRetries(ctx context.Context, most time.Duration, try func() error) error {
	for deadline := time.Now().Add(most); ; {
		last := time.Now().After(deadline)
		err := try()
		if code(err) != sqlite3.SQLITE_BUSY || last {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond + rand.N(5*time.Millisecond)):
		}
	}
}

// code returns SQLite's primary result code, or 0 if the error is not SQLite's.
func code(err error) int {
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		return failed.Code() & 0xff
	}
	return 0
}
