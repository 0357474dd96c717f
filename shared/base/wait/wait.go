// Package wait waits for a time or for the end of a context, whichever comes first.
package wait

import (
	"context"
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
