// Package records lets users read and delete their own data. Each file has one idea:
//   - approvals, allowlist, notes, reminders, devices and tokens: the decisions that wait for a user, and the user's
//     settings;
//   - threads, messages, search, export and outputs: the conversations, and everything that is stored of them;
//   - audit and about: the audit log, and a description of the actions in it;
//   - delete, expire and aside: deletion by the user, deletion after the retention, and quarantined runs;
//   - uploads: files that the user has uploaded for later prompts;
//   - user and spent: the user's own document, and the user's model usage.
//
// The ID of another user's data behaves like an ID that does not exist.
package records

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Records reads and changes users' documents in a store.
type Records struct {
	Store  store.Store
	Files  blob.Store // has the bytes of uploaded files; nil: none can be uploaded
	Now    func() time.Time
	Random io.Reader // for nonces; nil means crypto/rand

	Retention time.Duration // how long an unused conversation is kept; 0: forever
	AuditDays int           // number of days that audit entries are kept; 0: forever
}

func (r *Records) get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := r.Store.Get(ctx, paths...)
	return docs, storeError(err)
}

// page runs a query from the cursor of an earlier page. It reads one document more than the page has, so that a list of
// exactly one page has no cursor.
func (r *Records) page(ctx context.Context, q store.Query, cursor string) ([]store.Doc, string, error) {
	if cursor != "" {
		after, err := document.ParseCursor(q, cursor)
		if err != nil {
			return nil, "", errBadCursor()
		}
		q.After = after
	}
	limit := q.Limit
	q.Limit++
	docs, err := r.Store.Query(ctx, q)
	if cursor != "" && errors.Is(err, store.ErrInvalid) {
		return nil, "", errBadCursor()
	}
	if err != nil {
		return nil, "", storeError(err)
	}
	if len(docs) <= limit {
		return docs, "", nil
	}
	return docs[:limit], document.FormatCursor(q, docs[limit-1]), nil
}

func errBadCursor() error {
	return fault.Invalid("cursor", "not a cursor of this list")
}

// storeError turns a store's error into one that callers may show.
func storeError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
		return fault.Unavailable("The service is temporarily unavailable. Please try again.", err)
	}
	return err
}
