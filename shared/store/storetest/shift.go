package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Shift gives st with a clock that the test can set forward, so that what depends on time can be tried on a store whose
// clock is not ours, the Firestore emulator's for one. The func adds d (0 or more) to what ReadTime and later versions
// say; versions of before stay as they were. Only this view of the store knows of it, and after the first shift all
// commits must go through it.
func Shift(st store.Store) (store.Store, func(d time.Duration)) {
	s := &shifted{Store: st}
	return s, s.forward
}

type shifted struct {
	store.Store
	mu    sync.RWMutex
	total time.Duration
	steps []step
	last  time.Time // the latest version or read time of the store below that was seen
}

// step says that versions of the store below that are later than after are seen later by total.
type step struct {
	after time.Time
	total time.Duration
}

func (s *shifted) forward(d time.Duration) {
	if d < 0 {
		panic("storetest: a store's clock never goes back")
	}
	// A read brings the time below up to now: everything that is committed from here on is later.
	if _, err := s.Get(context.Background(), "shift/now"); err != nil {
		panic("storetest: shift: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += d.Truncate(time.Microsecond)
	s.steps = append(s.steps, step{s.last, s.total})
}

// Get is the store's, at the shifted time.
func (s *shifted) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := s.Store.Get(ctx, paths...)
	return s.show(docs), err
}

// Query is the store's, at the shifted time. Times in fields are the caller's and stay.
func (s *shifted) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	docs, err := s.Store.Query(ctx, q)
	return s.show(docs), err
}

// Commit is the store's, with versions at the shifted time.
func (s *shifted) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if err := store.CheckCommit(writes); err != nil {
		return nil, err
	}
	below := make([]store.Write, len(writes))
	for i, w := range writes {
		w.Doc.Version = s.below(w.Doc.Version)
		below[i] = w
	}
	versions, err := s.Store.Commit(ctx, below...)
	for i, v := range versions {
		s.saw(v) // a zero one, of a delete, stays zero
		versions[i] = s.above(v)
	}
	return versions, err
}

func (s *shifted) show(docs []store.Doc) []store.Doc {
	for i := range docs {
		d := &docs[i]
		s.saw(d.ReadTime)
		d.Version = s.above(d.Version)
		s.mu.RLock()
		d.ReadTime = d.ReadTime.Add(s.total)
		s.mu.RUnlock()
	}
	return docs
}

func (s *shifted) saw(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.last) {
		s.last = t
	}
}

// above turns a version of the store below into the one that is seen; a zero one stays zero.
func (s *shifted) above(v time.Time) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seen(v)
}

func (s *shifted) seen(v time.Time) time.Time {
	for i := len(s.steps) - 1; i >= 0; i-- {
		if v.After(s.steps[i].after) {
			return v.Add(s.steps[i].total)
		}
	}
	return v
}

// below is above turned round. For a version that above never gives it is one that no document has.
func (s *shifted) below(v time.Time) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := len(s.steps) - 1; i >= 0; i-- {
		if own := v.Add(-s.steps[i].total); s.seen(own).Equal(v) {
			return own
		}
	}
	if s.seen(v).Equal(v) {
		return v
	}
	return time.UnixMicro(1)
}
