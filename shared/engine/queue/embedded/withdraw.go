package embedded

import (
	"context"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Withdraw deletes the waiting messages about runs for which drop returns true, and returns their number. drop is
// called with the runs of one page at a time. A message that is being delivered, or has changed in the meantime, stays.
// The error is drop's or the store's.
func (q *Queue) Withdraw(ctx context.Context,
	drop func(ctx context.Context, runIDs []string) (map[string]bool, error)) (n int, err error) {
	for docs, err := range document.Pages(ctx, q.store, document.AllMessages(pageSize)) {
		if err != nil {
			return n, queue.Unavailable(err)
		}
		withdrawn, err := q.withdraw(ctx, docs, drop)
		n += withdrawn
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (q *Queue) withdraw(ctx context.Context, docs []store.Doc,
	drop func(context.Context, []string) (map[string]bool, error)) (n int, err error) {
	var runIDs []string
	about := make([]content, len(docs))
	for i, d := range docs {
		if err := document.Decode(d, &about[i]); err != nil {
			return 0, queue.Unavailable(err)
		}
		runIDs = append(runIDs, about[i].RunID)
	}
	gone, err := drop(ctx, runIDs)
	if err != nil {
		return 0, err
	}
	for i, d := range docs {
		if !gone[about[i].RunID] {
			continue
		}
		_, err := q.store.Commit(ctx, store.Delete(d.Path, d.Version))
		if err != nil && !lost(err) {
			return n, queue.Unavailable(err)
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}
