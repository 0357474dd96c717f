package faulty

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
func Shift(st store.Store) (*Store, func(d time.Duration)) {
	s := &shifted{}
	s.st = Wrap(st, s.shift)
	return s.st, s.forward
}

type shifted struct {
	st    *Store
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
		panic("faulty: a store's clock never goes back")
	}
	// A read brings the underlying clock up to now: every commit from here on is later.
	if _, err := s.st.Get(context.Background(), "shift/now"); err != nil {
		panic("faulty: shift: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += d.Truncate(time.Microsecond)
	s.steps = append(s.steps, step{s.last, s.total})
}

// shift gives the underlying store unshifted times and the caller shifted ones. Times in fields belong to the caller
// and do not change.
func (s *shifted) shift(ctx context.Context, c *Call, next Next) error {
	if err := store.CheckCommit(c.Writes); err != nil && c.Method == Commit {
		return err
	}
	below := make([]store.Write, len(c.Writes))
	for i, w := range c.Writes {
		w.Doc.Version = s.below(w.Doc.Version)
		below[i] = w
	}
	c.Writes = below
	err := next(ctx)
	s.show(c.Docs)
	for i, v := range c.Versions {
		s.saw(v) // the zero time, of a delete, stays zero
		c.Versions[i] = s.above(v)
	}
	return err
}

func (s *shifted) show(docs []store.Doc) {
	for i := range docs {
		d := &docs[i]
		s.saw(d.ReadTime)
		d.Version = s.above(d.Version)
		s.mu.RLock()
		d.ReadTime = d.ReadTime.Add(s.total)
		s.mu.RUnlock()
	}
}

func (s *shifted) saw(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.last) {
		s.last = t
	}
}

// above shifts a version of the underlying store; the zero time stays zero.
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
