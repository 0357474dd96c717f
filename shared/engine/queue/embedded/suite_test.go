package embedded_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/queue/queuetest"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestConformance(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"in memory": func(t *testing.T) store.Store { return newMemory(t) },
		"in a file": func(t *testing.T) store.Store { return openFile(t, t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			queuetest.Run(t, queuetest.Suite{
				Open:       func(t *testing.T) queuetest.Backend { return backend(open(t)) },
				Redelivers: embedded.AckDeadline + 5*time.Minute,
				Quiet:      2 * embedded.AckDeadline,
				In:         synctest.Test,
			})
		})
	}
}

// backend returns the queue in the store; each consumer has its own Queue, as another process would.
func backend(st store.Store) queuetest.Backend {
	return queuetest.Backend{
		Queue: embedded.New(st, embedded.Options{}),
		Consume: func(t *testing.T, push queuetest.Push) func() {
			mine := faulty.Wrap(st)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- embedded.New(mine, embedded.Options{}).Run(ctx, push); close(ended) }()
			kill := func() {
				cut(mine)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(kill)
			return kill
		},
	}
}
