package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Calls counts the calls of one method, and the documents that they read or wrote.
type Calls struct {
	Trips int // round trips, failed ones included
	Docs  int // documents read (missing ones included), written or deleted; none for a call that failed
	Bytes int // size of those documents' data
}

// Counts holds the calls of each method of a store.
type Counts struct{ Get, Query, Commit Calls }

// Counter is a store that counts its calls.
type Counter struct {
	store.Store
	mu     sync.Mutex
	counts Counts
}

// Count returns st with counters, which show the cost of a transition.
func Count(st store.Store) *Counter { return &Counter{Store: st} }

// Take returns the counts since the last Take.
func (c *Counter) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = Counts{}
	return taken
}

// Get calls the store and counts.
func (c *Counter) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := c.Store.Get(ctx, paths...)
	if len(paths) > 0 {
		c.add(&c.counts.Get, docs)
	}
	return docs, err
}

// Query calls the store and counts.
func (c *Counter) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	docs, err := c.Store.Query(ctx, q)
	c.add(&c.counts.Query, docs)
	return docs, err
}

// Commit calls the store and counts.
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
