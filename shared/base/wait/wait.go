// Package wait waits for a time or for the end of a context, whichever comes first.
package wait

import (
	"context"
	"math/rand/v2"
	"time"
)

// For waits for d and returns nil, or returns ctx's error if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Backoff waits before the nth retry of a request, from 1, like [For]. It waits for first, and for four times as long
// with each further retry. A random factor of 1 to 2 keeps callers from retrying at the same moment.
func Backoff(ctx context.Context, first time.Duration, n int) error {
	d := first << (2 * (n - 1))
	return For(ctx, d+rand.N(d))
}
