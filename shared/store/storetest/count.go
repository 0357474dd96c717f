package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Calls says how often one method was called, and how many documents it read or wrote in all.
type Calls struct {
	Trips int // round trips; a call that failed is one too
	Docs  int // documents read (a missing one is read as well) or written or deleted; none for a call that failed
	Bytes int // of those documents' data
}

// Counts is what a store was asked for.
type Counts struct{ Get, Query, Commit Calls }

// Counter is a store that counts.
type Counter struct {
	store.Store
	mu     sync.Mutex
	counts Counts
}

// Count gives st with counters, to show what a transition costs.
func Count(st store.Store) *Counter { return &Counter{Store: st} }

// Take gives the counts since the last Take.
func (c *Counter) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = Counts{}
	return taken
}

// Get is the store's.
func (c *Counter) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := c.Store.Get(ctx, paths...)
	if len(paths) > 0 {
		c.add(&c.counts.Get, docs)
	}
	return docs, err
}

// Query is the store's.
func (c *Counter) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	docs, err := c.Store.Query(ctx, q)
	c.add(&c.counts.Query, docs)
	return docs, err
}

// Commit is the store's.
func (c *Counter) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	versions, err := c.Store.Commit(ctx, writes...)
	written := make([]store.Doc, len(versions))
	for i := range versions {
		written[i] = writes[i].Doc
	}
	c.add(&c.counts.Commit, written)
	return versions, err
}

func (c *Counter) add(calls *Calls, docs []store.Doc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls.Trips++
	calls.Docs += len(docs)
	for _, d := range docs {
		calls.Bytes += len(d.Data)
	}
}
