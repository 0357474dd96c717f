package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := wait.For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := wait.For(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestBackoff checks the bounds of the waits: the first one, and four times as much with each retry.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for n, least := range []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1600 * time.Millisecond} {
			began := time.Now()
			if err := wait.Backoff(t.Context(), 100*time.Millisecond, n+1); err != nil {
				t.Errorf("retry %d: %v", n+1, err)
			}
			if waited := time.Since(began); waited < least || waited >= 2*least {
				t.Errorf("retry %d: waited %v; want %v to %v", n+1, waited, least, 2*least)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := wait.Backoff(ctx, time.Hour, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}
