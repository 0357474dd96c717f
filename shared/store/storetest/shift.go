package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Shift returns st with a clock that the test can set forward, so that time-dependent behaviour can be tested on a
// store whose clock the test does not control, such as the Firestore emulator's. The func adds d (0 or more) to
// ReadTime and to later versions; earlier versions stay as they were. Only the returned store sees the shift, and after
// the first shift all commits must go through it.
func Shift(st store.Store) (store.Store, func(d time.Duration)) {
	s := &shifted{Store: st}
	return s, s.forward
}

type shifted struct {
	store.Store
	mu    sync.RWMutex
	total time.Duration
	steps []step
	last  time.Time // the latest version or read time of the underlying store that was seen
}

// step means that versions of the underlying store later than after are shifted by total.
type step struct {
	after time.Time
	total time.Duration
}

func (s *shifted) forward(d time.Duration) {
	if d < 0 {
		panic("storetest: a store's clock never goes back")
	}
	// A read brings the underlying clock up to now: every commit from here on is later.
	if _, err := s.Get(context.Background(), "shift/now"); err != nil {
		panic("storetest: shift: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += d.Truncate(time.Microsecond)
	s.steps = append(s.steps, step{s.last, s.total})
}

// Get calls the underlying store and shifts the times.
func (s *shifted) Get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := s.Store.Get(ctx, paths...)
	return s.show(docs), err
}

// Query calls the underlying store and shifts the times. Times in fields are the caller's and stay.
func (s *shifted) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	docs, err := s.Store.Query(ctx, q)
	return s.show(docs), err
}

// Commit calls the underlying store and shifts the versions.
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
		s.saw(v) // the zero time, of a delete, stays zero
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

// above converts a version of the underlying store to a shifted one; the zero time stays zero.
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

// below is the inverse of above. For a time that above never returns, it returns one that no document has.
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
