package queuetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
)

// inbox is a consumer that records the pushes that it receives.
type inbox struct {
	// handle receives the attempt as counted here, because not every backend sends it.
	handle func(ctx context.Context, runID string, attempt int) error
	mu     sync.Mutex
	seen   map[string]int
	acked  map[string]bool
	news   chan struct{}
}

func newInbox(handle func(ctx context.Context, runID string, attempt int) error) *inbox {
	if handle == nil {
		handle = func(context.Context, string, int) error { return nil }
	}
	return &inbox{handle: handle, seen: map[string]int{}, acked: map[string]bool{}, news: make(chan struct{}, 1)}
}

func (in *inbox) push(ctx context.Context, envelope []byte) error {
	d, err := queue.ParsePush(envelope, "")
	if err != nil {
		return err
	}
	id := d.RunID
	in.mu.Lock()
	in.seen[id]++
	attempt := in.seen[id]
	in.mu.Unlock()
	if err := in.handle(ctx, id, attempt); err != nil {
		return err
	}
	in.mu.Lock()
	in.acked[id] = true
	in.mu.Unlock()
	select {
	case in.news <- struct{}{}:
	default:
	}
	return nil
}

// await waits until all runs were acknowledged.
func (in *inbox) await(t *testing.T, bound time.Duration, ids ...string) {
	t.Helper()
	late := time.After(bound)
	for {
		missing := in.missing(ids)
		if len(missing) == 0 {
			return
		}
		select {
		case <-in.news:
		case <-late:
			t.Fatalf("%d of %d runs were not acknowledged within %v: %q", len(missing), len(ids), bound, missing)
		}
	}
}

func (in *inbox) missing(ids []string) (missing []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range ids {
		if !in.acked[id] {
			missing = append(missing, id)
		}
	}
	return missing
}

func (in *inbox) pushes(id string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.seen[id]
}

func (in *inbox) all() (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, k := range in.seen {
		n += k
	}
	return n
}
