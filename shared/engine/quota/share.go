package quota

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits of a share.
const (
	writeEvery   = time.Second      // the least time between two writes of an instance
	sliceTime    = 5 * time.Second  // a slice that is used up sooner is followed by a larger one
	maxSlice     = whole / 10       // the largest slice
	leaseTimeout = 10 * time.Second // for the reads and writes of one lease
	maxTries     = 5                // writes that other instances' writes precede
	retryWait    = 200 * time.Millisecond
)

// format is the format of the document. A process leaves a document of another format alone and has no limits.
const format = 1

// A share is the part of a model's quota that one instance has.
type share struct {
	cfg  Config
	path string
	lead chan struct{} // has one element while a caller leases

	mu     sync.Mutex
	asks   []*pending // those that the next lease answers
	units  int64      // the rest of the slice
	minute int64      // the minute of the slice
	ends   time.Time  // the end of that minute, by this instance's clock
	size   int64      // the size of the last slice
	leased time.Time  // the time of the last lease
}

// A pending is a call that waits for the next lease.
type pending struct {
	ask
	done chan struct{} // closed when rest is set
	rest time.Duration // how long the call must wait; 0: it may be made
}

func newShare(cfg Config, name string) *share {
	return &share{cfg: cfg, path: cfg.Path(name), lead: make(chan struct{}, 1)}
}

// take returns 0 if the call may be made, or how long it must wait. The error is ctx's.
func (s *share) take(ctx context.Context, a ask) (rest time.Duration, err error) {
	p := &pending{ask: a, done: make(chan struct{})}
	if s.fromSlice(p) {
		return 0, nil
	}
	s.add(p)
	for {
		select {
		case <-p.done:
			return p.rest, nil
		case <-ctx.Done():
			s.withdraw(p)
			return 0, ctx.Err()
		case s.lead <- struct{}{}:
		}
		err := s.leaseInTurn(ctx, p)
		<-s.lead
		if err != nil {
			s.withdraw(p)
			return 0, err
		}
	}
}

// fromSlice answers the call from the rest of the slice, if that suffices. A run with a turn uses the turn.
func (s *share) fromSlice(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.waited || s.units < p.cost || !s.cfg.Now().Before(s.ends) {
		return false
	}
	s.units -= p.cost
	close(p.done)
	return true
}

// add adds the call to those that the next lease answers.
func (s *share) add(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, p)
}

// withdraw removes a call whose caller is gone.
func (s *share) withdraw(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.asks {
		if other == p {
			s.asks = append(s.asks[:i], s.asks[i+1:]...)
			return
		}
	}
}

// leaseInTurn waits until this instance may write again, and leases for all calls that ask until then. It does nothing
// if an earlier lease has answered the call.
func (s *share) leaseInTurn(ctx context.Context, p *pending) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	s.mu.Lock()
	early := writeEvery - s.cfg.Now().Sub(s.leased)
	if s.leased.IsZero() {
		early = 0
	}
	s.mu.Unlock()
	if early > 0 {
		if err := s.cfg.Sleep(ctx, min(early, writeEvery)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	asks := s.asks
	s.asks = nil
	s.mu.Unlock()
	if asks = slices.DeleteFunc(asks, s.fromSlice); len(asks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTimeout) // it answers other callers too
	defer cancel()
	err := s.lease(ctx, asks)
	s.mu.Lock()
	s.leased = s.cfg.Now()
	s.mu.Unlock()
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "a shared quota could not be read; calls are made without it",
			"counter", "quota_unshared", "quota", s.path, "calls", len(asks), "error", err)
		for _, a := range asks {
			a.rest = 0
		}
	}
	for _, a := range asks {
		close(a.done)
	}
	return nil
}

// lease answers the calls from the shared calendar, and takes a slice for later calls.
func (s *share) lease(ctx context.Context, asks []*pending) error {
	for try := 1; ; try++ {
		sent := s.cfg.Now()
		docs, err := s.cfg.Store.Get(ctx, s.path)
		if err != nil {
			return err
		}
		c, err := decode(docs[0])
		if err != nil {
			return err
		}
		now := docs[0].ReadTime
		c.advance(now.Unix() / minuteSeconds)
		for _, a := range asks {
			a.rest = 0
			if until := c.answer(a.ask); until > 0 {
				a.rest = max(timeOf(until).Sub(now), time.Millisecond)
			}
		}
		got := c.slice(s.wanted(sent), s.cfg.Limits.cost(0))
		err = s.write(ctx, docs[0], c)
		switch {
		case err == nil:
			s.keep(got, c.Minute, sent.Add(timeOf(c.Minute+1).Sub(now)))
			return nil
		case !errors.Is(err, store.ErrConflict) || try == maxTries:
			return err
		}
		if err := s.cfg.Sleep(ctx, retryWait+time.Duration(s.cfg.Random()*float64(retryWait))); err != nil {
			return err
		}
	}
}

// wanted returns the size of the next slice. It doubles while slices are used up fast, and is halved with time.
func (s *share) wanted(now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := now.Sub(s.leased)
	if s.leased.IsZero() || since >= sliceTime {
		return s.size >> min(since/sliceTime, 62)
	}
	return min(max(2*s.size, s.cfg.Limits.cost(0)), maxSlice)
}

// keep adds a slice to the rest of an earlier one of the same minute.
func (s *share) keep(units, minute int64, ends time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute != s.minute {
		s.units = 0
	}
	s.units, s.size, s.minute, s.ends = s.units+units, units, minute, ends
}

// write stores the calendar, unless nothing in it has changed.
func (s *share) write(ctx context.Context, old store.Doc, c *calendar) error {
	data, err := json.Marshal(c)
	if err != nil || bytes.Equal(data, old.Data) {
		return err
	}
	old.Path = s.path
	w, err := document.Known(old, nil, c)
	if err != nil {
		return err
	}
	_, err = s.cfg.Store.Commit(ctx, w)
	return err
}

// decode reads the calendar. A document of a later release is an error, so that it is not overwritten.
func decode(d store.Doc) (*calendar, error) {
	c := &calendar{Format: format}
	if !d.Exists() {
		return c, nil
	}
	from := json.NewDecoder(bytes.NewReader(d.Data))
	from.DisallowUnknownFields()
	if err := from.Decode(c); err != nil {
		return nil, fmt.Errorf("quota: %s cannot be read by this release: %w", d.Path, err)
	}
	if c.Format != format {
		return nil, fmt.Errorf("quota: %s has format %d; this release reads format %d", d.Path, c.Format, format)
	}
	return c, nil
}

const minuteSeconds = 60

// timeOf returns the beginning of a minute of a calendar.
func timeOf(minute int64) time.Time { return time.Unix(minute*minuteSeconds, 0) }
