package faulty

import (
	"context"
	"sync"

	"github.com/countersign-run/countersign/shared/store"
)

// Calls counts the calls of one method, and the documents that they read or wrote.
type Calls struct {
	Trips int // round trips, failed ones included
	Docs  int // documents read (missing ones included), written or deleted; none for a call that failed
	Bytes int // size of those documents' data
}

// Counts holds the calls of each method of a store.
type Counts struct {
	Get, Query, Commit Calls
	Watch              Calls // a trip is a state that was delivered
}

// Counter is a store that counts its calls.
type Counter struct {
	*Store
	mu     sync.Mutex
	counts Counts
}

// Count returns st with counters, which show the cost of a transition.
func Count(st store.Store) *Counter {
	c := &Counter{}
	c.Store = Wrap(st, c.see)
	return c
}

// Take returns the counts since the last Take.
func (c *Counter) Take() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = Counts{}
	return taken
}

func (c *Counter) see(ctx context.Context, call *Call, next Next) error {
	err := next(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch call.Method {
	case Get:
		if len(call.Paths) > 0 {
			c.counts.Get.add(call.Docs)
		}
	case Query:
		c.counts.Query.add(call.Docs)
	case Watch:
		c.counts.Watch.add(call.Docs)
	case Commit:
		written := make([]store.Doc, len(call.Versions))
		for i := range call.Versions {
			written[i] = call.Writes[i].Doc
		}
		c.counts.Commit.add(written)
	}
	return err
}

func (c *Calls) add(docs []store.Doc) {
	c.Trips++
	c.Docs += len(docs)
	for _, d := range docs {
		c.Bytes += len(d.Data)
	}
}
