package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// A conversation that was not used during the retention is deleted like one that its user deletes: it is hidden first,
// and then deleted with its runs, approvals, messages and events. A store that deletes single documents by their time
// cannot do that: it would leave halves of conversations, and audit chains without an end. Audit entries can expire
// that way, because each entry says when the previous one expires.

const (
	expirePage  = 20  // threads in one query
	expireMost  = 100 // threads that one request deletes
	expireAudit = 200 // audit documents in one sweep
	byRetention = "retention"
)

// Unused counts the conversations that ExpireThreads found.
type Unused struct {
	Found   int  // conversations that were not used during the retention
	Deleted int  // deleted ones; the others have an open run or were used in the meantime
	More    bool // there may be more
}

// ExpireThreads deletes the conversations of a shard that were not used during the retention, with their runs and
// approvals, until ctx's time is nearly up. A conversation with a run that has not ended is kept, even if the run is
// quarantined, so no open approval or review is deleted. An error in one deletion does not stop the others.
func (r *Records) ExpireThreads(ctx context.Context, shard int64) (u Unused, err error) {
	if r.Retention <= 0 {
		return u, nil
	}
	before := r.now().Add(-r.Retention)
	var failed []error
	for docs, err := range document.Pages(ctx, r.Store, document.UnusedThreads(shard, before, expirePage)) {
		if err != nil {
			return u, storeError(err)
		}
		for _, d := range docs {
			if u.Deleted == expireMost || outOfTime(ctx) != nil {
				u.More = true
				return u, errors.Join(failed...)
			}
			u.Found++
			deleted, err := r.expireThread(ctx, d, before)
			switch {
			case errors.Is(err, errOutOfTime):
				u.More = true
				return u, errors.Join(failed...)
			case err != nil:
				failed = append(failed, fmt.Errorf("%s: %w", d.Path, err))
			case deleted:
				u.Deleted++
			}
		}
	}
	return u, errors.Join(failed...)
}

// expireThread deletes the conversation, unless a run has not ended or the conversation was used since.
func (r *Records) expireThread(ctx context.Context, d store.Doc, before time.Time) (deleted bool, err error) {
	for try := 0; ; try++ {
		f := document.ThreadFieldsOf(d)
		if !d.Exists() || f.UpdatedAt.IsZero() || f.UpdatedAt.After(before) {
			return false, nil // another process deletes it, or its user continues it
		}
		ended, err := r.allEnded(ctx, f.UID, document.ID(d))
		if err != nil || !ended {
			return false, err
		}
		err = r.markUnused(ctx, d)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return false, err
		}
		docs, err := r.get(ctx, d.Path)
		if err != nil {
			return false, err
		}
		d = docs[0]
	}
	err = r.eraseThread(ctx, d.Path)
	if fault.Is(err, fault.Policy, fault.CodeBusy) {
		return false, nil // the sweep continues the deletion
	}
	return err == nil, err
}

func (r *Records) markUnused(ctx context.Context, d store.Doc) error {
	var t run.Thread
	if err := document.Decode(d, &t); err != nil {
		return err
	}
	t.Deleting = true
	marked, err := document.Put(d, document.ThreadFields{UID: t.UID, Deleting: r.now()}.Map(t.ID), t)
	if err != nil {
		return err
	}
	return r.record(ctx, audit.Entry{UID: t.UID, Kind: audit.Deletion, Ref: t.ID, Rule: byRetention}, marked)
}

// allEnded reports whether all runs of the thread have ended and have nothing left to dispose of.
func (r *Records) allEnded(ctx context.Context, uid, threadID string) (bool, error) {
	for d, err := range document.All(ctx, r.Store, document.RunsOfThread(uid, threadID, runPage)) {
		if err != nil {
			return false, storeError(err)
		}
		if !ended(d) || needsDisposal(d) {
			return false, nil
		}
	}
	return true, nil
}

// Expiry deletes expired audit entries and the expired chain ends of deleted runs, for a store that does not expire
// documents itself.
type Expiry struct {
	Records *Records

	mu    sync.Mutex
	after map[string]*store.Cursor // last position, by collection; each process starts at the beginning
}

// Audit reads the next page of each kind and deletes the expired documents.
func (e *Expiry) Audit(ctx context.Context) (deleted int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.after == nil {
		e.after = map[string]*store.Cursor{}
	}
	r := e.Records
	for _, q := range []store.Query{document.AllAudit(expireAudit), document.AllAuditHeads(expireAudit)} {
		q.After = e.after[q.Collection]
		docs, err := r.Store.Query(ctx, q)
		if err != nil {
			return deleted, storeError(err)
		}
		n, err := r.deleteExpired(ctx, docs)
		if deleted += n; err != nil {
			return deleted, storeError(err)
		}
		e.after[q.Collection] = nil
		if len(docs) == q.Limit {
			e.after[q.Collection] = document.After(q, docs[len(docs)-1])
		}
	}
	return deleted, nil
}

func (r *Records) deleteExpired(ctx context.Context, docs []store.Doc) (int, error) {
	var writes []store.Write
	for _, d := range docs {
		if document.Expired(d, r.now()) {
			writes = append(writes, store.Delete(d.Path, time.Time{}))
		}
	}
	if len(writes) == 0 {
		return 0, nil
	}
	_, err := r.Store.Commit(ctx, writes...)
	return len(writes), err
}
