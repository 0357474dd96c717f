package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// Runs and threads that a release before stored have no shard, and no sweep finds them by one. So the sweeps of this
// release walk through both collections, in the order of their ids, and give a shard to what needs one. They do it
// twice: at once, and when an hour has passed since then, for what a process of the release before stored while this
// one was being deployed. Then it is done for good. This can go with the release that no longer takes over the stores
// of releases without shards.

// shardsPath is the path of the document that says how far the walk is.
const shardsPath = document.Sweeps + "/shards"

// secondWalk is how long after the first walk began the second one begins: no process of an earlier release is left.
const secondWalk = time.Hour

// shardWalk is how far the walk is.
type shardWalk struct {
	Began  time.Time `json:"began"` // the first walk
	Walks  int       `json:"walks"` // that are complete; two: it is done
	Thread bool      `json:"thread,omitempty"`
	// the id that was looked at last: a run's, or where Thread is set a thread's
	After string `json:"after,omitempty"`
}

// GiveShards gives a shard to what an earlier release stored without one, as far as the time reaches. Until it has, no
// sweep finds that. It is called before each sweep, and is nothing but a flag once it is done.
func (l *Loop) GiveShards(ctx context.Context) error {
	if l.sharded.Load() {
		return nil
	}
	var w shardWalk
	doc, err := document.Get(ctx, l.Store, shardsPath, &w)
	if err != nil {
		return journal.StoreError(err)
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

// walk looks at the rest of both collections, page by page.
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
			return journal.StoreError(err)
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
		if !journal.HasTimeFor(ctx, pageTime) {
			return nil
		}
	}
}

// giveShard changes nothing of the document but its fields. Whoever else has changed it has given it a shard.
func (l *Loop) giveShard(ctx context.Context, d store.Doc) error {
	fields, needed := document.WithShard(d)
	if !needed {
		return nil
	}
	_, err := l.Store.Commit(ctx, store.Update(d.Path, d.Version, fields, d.Data))
	switch {
	case errors.Is(err, store.ErrTooLarge): // by a few bytes; it does not keep the others from their shards
		l.Log.ErrorContext(ctx, "a document is too large for its shard, and no sweep will find it", "counter",
			"no_shard",
			"path", d.Path)
	case err != nil && !errors.Is(err, store.ErrConflict):
		return journal.StoreError(err)
	}
	return nil
}

// keepWalk stores how far the walk is. Of two sweeps at once, one does so; the other has done what it had to all the
// same.
func (l *Loop) keepWalk(ctx context.Context, doc store.Doc, w shardWalk) error {
	data, err := strictjson.Marshal(w)
	if err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	write := store.Create(shardsPath, nil, data)
	if doc.Exists() {
		write = store.Update(shardsPath, doc.Version, nil, data)
	}
	if _, err = l.Store.Commit(ctx, write); err != nil && !errors.Is(err, store.ErrConflict) {
		return journal.StoreError(err)
	}
	return nil
}
