package faulty

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/countersign-run/countersign/shared/store"
)

// Recorder is a store that records the paths of written documents.
type Recorder struct {
	*Store
	mu    sync.Mutex
	paths map[string]bool
}

// Record wraps st in a Recorder.
func Record(st store.Store, hooks ...Hook) *Recorder {
	r := &Recorder{paths: map[string]bool{}}
	r.Store = Wrap(Wrap(st, Commits(r.see)), hooks...)
	return r
}

func (r *Recorder) see(ctx context.Context, c *Call, next Next) error {
	for _, w := range c.Writes {
		r.Add(w.Doc.Path)
	}
	return next(ctx)
}

// Add records documents that were written without this store.
func (r *Recorder) Add(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		r.paths[p] = true
	}
}

// Left returns the recorded documents that still exist, sorted by path.
func (r *Recorder) Left(ctx context.Context) (left []store.Doc, err error) {
	r.mu.Lock()
	all := slices.Sorted(maps.Keys(r.paths))
	r.mu.Unlock()
	for page := range slices.Chunk(all, store.MaxReads) {
		docs, err := r.Get(ctx, page...)
		if err != nil {
			return nil, err
		}
		left = append(left, slices.DeleteFunc(docs, func(d store.Doc) bool { return !d.Exists() })...)
	}
	return left, nil
}
