package loop_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

// patience is how long a store may take to answer at all.
const patience = 2 * time.Minute

// steady is a store that retries on a busy machine, where an emulator may take longer for an answer than a client
// waits. It looks up what became of a commit without an answer. So its callers see the outages that a test makes, and
// no others.
type steady struct{ store.Store }

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

// Get is the store's.
func (s steady) Get(ctx context.Context, paths ...string) (docs []store.Doc, err error) {
	err = outlast(ctx, func(ctx context.Context) error {
		docs, err = s.Store.Get(ctx, paths...)
		return err
	})
	return docs, err
}

// Query is the store's.
func (s steady) Query(ctx context.Context, q store.Query) (docs []store.Doc, err error) {
	err = outlast(ctx, func(ctx context.Context) error {
		docs, err = s.Store.Query(ctx, q)
		return err
	})
	return docs, err
}

// Commit is the store's. One that conflicts after a try without an answer may conflict with that try.
func (s steady) Commit(ctx context.Context, writes ...store.Write) (versions []time.Time, err error) {
	tries := 0
	err = outlast(ctx, func(ctx context.Context) error {
		tries++
		if versions, err = s.Store.Commit(ctx, writes...); tries == 1 || !errors.Is(err, store.ErrConflict) {
			return err
		}
		versions, err = s.became(ctx, writes)
		return err
	})
	return versions, err
}

// became returns the versions of a commit that has taken place already, and ErrConflict where it has not.
func (s steady) became(ctx context.Context, writes []store.Write) ([]time.Time, error) {
	paths := make([]string, len(writes))
	for i, w := range writes {
		paths[i] = w.Doc.Path
	}
	docs, err := s.Store.Get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	versions := make([]time.Time, len(writes))
	for i, w := range writes {
		switch d := docs[i]; {
		case w.Op == store.OpDelete && !d.Exists():
		case w.Op != store.OpDelete && bytes.Equal(d.Data, w.Doc.Data) && !d.Version.Equal(w.Doc.Version):
			versions[i] = d.Version
		default:
			return nil, store.ErrConflict
		}
	}
	return versions, nil
}

// busy is a store of a busy machine: each 13th answer is lost, and of the commits among those every other one takes
// place.
type busy struct {
	store.Store
	calls, lost int
}

func (b *busy) late() bool {
	b.calls++
	return b.calls%13 == 0
}

// Get is the store's.
func (b *busy) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	if b.late() {
		return nil, store.ErrUnavailable
	}
	return b.Store.Get(ctx, paths...)
}

// Query is the store's.
func (b *busy) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if b.late() {
		return nil, store.ErrUnavailable
	}
	return b.Store.Query(ctx, q)
}

// Commit is the store's. One that empties the store restarts the count, so that a sequence is the same each time it is
// played.
func (b *busy) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if !slices.ContainsFunc(writes, func(w store.Write) bool { return w.Op != store.OpDelete }) {
		b.calls, b.lost = 0, 0
	}
	if !b.late() {
		return b.Store.Commit(ctx, writes...)
	}
	if b.lost++; b.lost%2 == 0 {
		if _, err := b.Store.Commit(ctx, writes...); err != nil {
			return nil, err
		}
	}
	return nil, store.ErrUnavailable
}

// newBusyWorld is a world on a machine as busy as the emulator's may be: answers are lost, and the store's clock runs
// on while the test's stands still.
func newBusyWorld(t testing.TB) *world {
	w := &world{t: t, now: began}
	stores := began
	st, err := embedded.OpenMemory(func() time.Time { return stores })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return w.on(steady{&busy{Store: st}}, func(d time.Duration) { stores = stores.Add(d + 10*time.Second) })
}
