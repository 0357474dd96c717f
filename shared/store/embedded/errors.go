package embedded

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/countersign-run/countersign/shared/store"
)

// wrap gives the error of a statement its place in the port: ctx's own error as such, a locked file or a full or failing
// disk as ErrUnavailable. SQLite's texts name tables and columns, never what is in them.
func wrap(ctx context.Context, method string, err error) error {
	if errors.Is(err, store.ErrConflict) {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return store.Interrupted(method, cause)
	}
	var failed *sqlite.Error
	if errors.As(err, &failed) {
		switch failed.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM:
			return fmt.Errorf("embedded store: %s: %w: %w", method, store.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("embedded store: %s: %w", method, err)
}
