package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Runs and threads of an earlier release have no shard, so no sweep finds them. The sweeps of this release therefore
// walk through both collections, in the order of their IDs, and add the missing shards. They do so twice: at once, and
// an hour later, for documents that a process of the earlier release stored during the deployment. This code can be
// removed once stores without shards no longer need a migration.

// shardsPath is the path of the document that holds the walk's progress.
const shardsPath = document.Sweeps + "/shards"

// secondWalk is the time between the starts of the two walks. After it, no process of an earlier release is left.
const secondWalk = time.Hour

// shardWalk is the walk's progress.
type shardWalk struct {
	Began  time.Time `json:"began"` // start of the first walk
	Walks  int       `json:"walks"` // number of complete walks; two means done
	Thread bool      `json:"thread,omitempty"`
	// After is the ID of the last document: a thread's if Thread is set, otherwise a run's.
	After string `json:"after,omitempty"`
}

// GiveShards adds shards to the documents that an earlier release stored without one, as far as its time allows. Until
// then, no sweep finds these documents. Call it before each sweep; once the work is done, it only reads a flag. The
// error is the store's, as from unit.StoreError.
func (l *Loop) GiveShards(ctx context.Context) error {
	if l.sharded.Load() {
		return nil
	}
	var w shardWalk
	doc, err := document.Get(ctx, l.Store, shardsPath, &w)
	if err != nil {
		return unit.StoreError(err)
	}
	now := l.Now().UTC().Truncate(time.Microsecond)
	if w.Began.IsZero() {
		w.Began = now
	}
	switch {
	case w.Walks >= 2:
		l.sharded.Store(true)
		return nil
	case w.Walks == 1 && now.Before(w.Began.Add(secondWalk)):
		return nil
	}
	if err := l.walk(ctx, &w); err != nil {
		return err
	}
	return l.keepWalk(ctx, doc, w)
}

// walk processes the rest of both collections, page by page.
func (l *Loop) walk(ctx context.Context, w *shardWalk) error {
	for {
		q := document.AllRuns(sweepPage)
		if w.Thread {
			q = document.AllThreads(sweepPage)
		}
		if w.After != "" {
			q.After = &store.Cursor{ID: w.After}
		}
		docs, err := l.Store.Query(ctx, q)
		if err != nil {
			return unit.StoreError(err)
		}
		for _, d := range docs {
			if err := l.giveShard(ctx, d); err != nil {
				return err
			}
			w.After = document.ID(d)
		}
		switch {
		case len(docs) == sweepPage:
		case w.Thread:
			w.Walks, w.Thread, w.After = w.Walks+1, false, ""
			return nil
		default:
			w.Thread, w.After = true, ""
		}
		if !unit.HasTimeFor(ctx, pageTime) {
			return nil
		}
	}
}

// giveShard changes only the document's fields. A conflict is ignored, because the other writer has added the shard.
func (l *Loop) giveShard(ctx context.Context, d store.Doc) error {
	fields, needed := document.WithShard(d)
	if !needed {
		return nil
	}
	_, err := l.Store.Commit(ctx, store.Update(d.Path, d.Version, fields, d.Data))
	switch {
	case errors.Is(err, store.ErrTooLarge): // by a few bytes; the others still get their shards
		l.Log.ErrorContext(ctx, "a document is too large for its shard, and no sweep will find it", "counter",
			"no_shard",
			"path", d.Path)
	case err != nil && !errors.Is(err, store.ErrConflict):
		return unit.StoreError(err)
	}
	return nil
}

// keepWalk stores the walk's progress. If two sweeps run at once, only one of them succeeds, which is enough.
func (l *Loop) keepWalk(ctx context.Context, doc store.Doc, w shardWalk) error {
	doc.Path = shardsPath
	write, err := document.Put(doc, nil, w)
	if err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	if _, err = l.Store.Commit(ctx, write); err != nil && !errors.Is(err, store.ErrConflict) {
		return unit.StoreError(err)
	}
	return nil
}
