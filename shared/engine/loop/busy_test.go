package loop_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// patience is the longest time that a store may take to answer.
const patience = 2 * time.Minute

// steady returns a store for a busy machine, where an emulator may take longer to answer than a client waits. It
// retries, and looks up the result of a commit without an answer. So its callers see only the outages that a test
// makes. Watches are an exception: they end where they are lost, because a retry does not bring back the lost states.
func steady(st store.Store) *faulty.Store {
	return faulty.Wrap(st, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		if c.Method == faulty.Watch {
			return next(ctx)
		}
		tries := 0
		return outlast(ctx, func(ctx context.Context) (err error) {
			tries++
			if err = next(ctx); c.Method != faulty.Commit || tries == 1 || !errors.Is(err, store.ErrConflict) {
				return err
			}
			// A commit may conflict with its own attempt that was not answered.
			c.Versions, err = became(ctx, st, c.Writes)
			return err
		})
	})
}

// outlast repeats a call until the store has answered it, or its caller has gone away.
func outlast(ctx context.Context, call func(context.Context) error) error {
	err := call(ctx)
	if !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		err = call(ctx)
	}
	return err
}

// became returns the versions of a commit that has already taken place, or ErrConflict if it has not.
func became(ctx context.Context, st store.Store, writes []store.Write) ([]time.Time, error) {
	paths := make([]string, len(writes))
	for i, w := range writes {
		paths[i] = w.Doc.Path
	}
	docs, err := st.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	versions := make([]time.Time, len(writes))
	for i, w := range writes {
		switch d := docs[i]; {
		case w.Op == store.OpDelete && !d.Exists():
		case w.Op == store.OpCheck: // its condition held if the other writes took effect
			versions[i] = w.Doc.Version
		case w.Op != store.OpDelete && bytes.Equal(d.Data, w.Doc.Data) && !d.Version.Equal(w.Doc.Version):
			versions[i] = d.Version
		default:
			return nil, store.ErrConflict
		}
	}
	return versions, nil
}

// busy returns the hook of a busy machine. Each 13th answer is lost, and every other lost commit takes place. A commit
// that empties the store restarts the count, so a sequence is the same each time it is played. An exception are the
// parallel queries of a sweep: any of them may be the lost one.
func busy() faulty.Hook {
	var mu sync.Mutex
	calls, lost := 0, 0
	answers := func(c *faulty.Call) func(context.Context, *faulty.Call, faulty.Next) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Method == faulty.Commit &&
			!slices.ContainsFunc(c.Writes, func(w store.Write) bool { return w.Op != store.OpDelete }) {
			calls, lost = 0, 0
		}
		if calls++; calls%13 != 0 {
			return func(ctx context.Context, _ *faulty.Call, next faulty.Next) error { return next(ctx) }
		}
		if c.Method == faulty.Commit {
			if lost++; lost%2 == 0 {
				return faulty.Lost
			}
		}
		return faulty.Down
	}
	return func(ctx context.Context, c *faulty.Call, next faulty.Next) error { return answers(c)(ctx, c, next) }
}

// newBusyEnv is an env on a machine as busy as the emulator's may be. Answers are lost, and the store's clock runs
// while the test's stands still.
func newBusyEnv(t testing.TB) *env {
	w := &env{t: t, now: began}
	var ahead atomic.Int64 // in nanoseconds
	st, err := embedded.OpenMemory(func() time.Time { return began.Add(time.Duration(ahead.Load())) })
	st = cleanup.Close(t, st, err)
	return w.on(steady(faulty.Wrap(st, busy())), func(d time.Duration) { ahead.Add(int64(d + 10*time.Second)) })
}
