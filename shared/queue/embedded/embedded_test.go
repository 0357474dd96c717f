package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/queue/embedded"
	"github.com/countersign-run/countersign/shared/store"
)

const run = "run_0123456789abcdef"

// clock is a time that tests set.
type clock struct{ at time.Time }

func newClock() *clock               { return &clock{time.Date(2026, 11, 2, 10, 0, 0, 123456000, time.UTC)} }
func (c *clock) now() time.Time      { return c.at }
func (c *clock) add(d time.Duration) { c.at = c.at.Add(d) }

func counter() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("m%04d", n) }
}

func acks(context.Context, []byte) error { return nil }

func TestBackoffIsThatOfPubSub(t *testing.T) {
	c := newClock()
	var failures []embedded.Failure
	q := embedded.New(newMemory(), embedded.Options{Now: c.now, ID: counter(), Failed: func(f embedded.Failure) { failures = append(failures, f) }})
	if err := q.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	var attempts []int
	fails := func(_ context.Context, envelope []byte) error {
		id, attempt, err := queue.ParsePush(envelope)
		if err != nil || id != run {
			t.Fatalf("pushed %q, %v", id, err)
		}
		attempts = append(attempts, attempt)
		return errors.New("the run is leased")
	}
	for _, pause := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60, 60} {
		if pause > 0 {
			c.add(pause*time.Second - time.Microsecond)
			deliver(t, q, fails, 0)
			c.add(time.Microsecond)
		}
		deliver(t, q, fails, 1)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(attempts, want) {
		t.Errorf("attempts %v, want %v", attempts, want)
	}
	if len(failures) != 10 || failures[9].Attempt != 10 || failures[9].RunID != run || failures[9].Poison() {
		t.Errorf("failures %v", failures)
	}
	for range 10 {
		c.add(embedded.MaxBackoff)
		deliver(t, q, fails, 1)
	}
	if last := failures[len(failures)-1]; last.Attempt != embedded.PoisonAttempts || !last.Poison() {
		t.Errorf("failure %+v is not called poison", last)
	}
	c.add(embedded.MaxBackoff)
	deliver(t, q, acks, 1)
	c.add(time.Hour)
	deliver(t, q, acks, 0)
}

func TestAClaimHidesTheMessageUntilTheAckDeadline(t *testing.T) {
	c, st := newClock(), newMemory()
	one := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	other := embedded.New(st, embedded.Options{Now: c.now})
	if err := one.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	deliver(t, one, func(context.Context, []byte) error {
		c.add(embedded.AckDeadline - time.Microsecond)
		deliver(t, other, acks, 0)
		c.add(time.Microsecond)
		deliver(t, other, acks, 1)
		return nil // too late, and no harm: the other has deleted the message
	}, 1)
	c.add(time.Hour)
	deliver(t, one, acks, 0)
}

func TestALateFailureDoesNotBringAnAcknowledgedMessageBack(t *testing.T) {
	c, st := newClock(), newMemory()
	q := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	if err := q.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	deliver(t, q, func(context.Context, []byte) error {
		c.add(embedded.AckDeadline)
		deliver(t, q, acks, 1)
		return errors.New("late")
	}, 1)
	c.add(time.Hour)
	deliver(t, q, acks, 0)
}

func TestOldestFirst(t *testing.T) {
	c := newClock()
	q := embedded.New(newMemory(), embedded.Options{Now: c.now})
	var want, got []string
	for i := range 20 {
		id := fmt.Sprintf("run_%016d", i)
		want = append(want, id)
		if err := q.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		c.add(time.Millisecond)
	}
	deliver(t, q, func(_ context.Context, envelope []byte) error {
		id, _, err := queue.ParsePush(envelope)
		got = append(got, id)
		return err
	}, 20)
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

func TestAnUnreadableDocumentDoesNotHoldUpTheRest(t *testing.T) {
	c, st := newClock(), newMemory()
	q := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	if _, err := st.Commit(t.Context(), store.Create("queue/a", map[string]any{"due": c.now()}, []byte(`[]`))); err != nil {
		t.Fatal(err)
	}
	if err := q.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	var good, refused int
	deliver(t, q, func(_ context.Context, envelope []byte) error {
		if id, _, err := queue.ParsePush(envelope); err != nil {
			refused++
		} else if id == run {
			good++
		}
		return nil
	}, 2)
	if good != 1 || refused != 1 {
		t.Errorf("%d good, %d refused", good, refused)
	}
}

func TestRunWakesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(), embedded.Options{})
		arrived := make(chan time.Time)
		start(t, q, func(context.Context, []byte) error { arrived <- time.Now(); return nil })
		synctest.Wait() // it has looked, found nothing, and sleeps
		asked := time.Now()
		if err := q.Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if late := (<-arrived).Sub(asked); late != 0 {
			t.Errorf("%v late", late)
		}
	})
}

func TestRunPollsForOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory()
		arrived := make(chan time.Time)
		start(t, embedded.New(st, embedded.Options{}), func(context.Context, []byte) error { arrived <- time.Now(); return nil })
		synctest.Wait()
		asked := time.Now()
		if err := embedded.New(st, embedded.Options{}).Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if late := (<-arrived).Sub(asked); late > embedded.PollEvery {
			t.Errorf("%v late", late)
		}
	})
}

func TestRunBoundsItsPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(), embedded.Options{})
		var now, most, done atomic.Int32
		start(t, q, func(context.Context, []byte) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Minute)
			now.Add(-1)
			done.Add(1)
			return nil
		})
		for i := range 10 {
			if err := q.Resume(t.Context(), fmt.Sprintf("run_%016d", i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3*time.Minute + time.Second)
		if most.Load() != embedded.Concurrency || done.Load() != 10 {
			t.Errorf("%d pushes at a time, %d done; want %d and 10", most.Load(), done.Load(), embedded.Concurrency)
		}
	})
}

func TestRunCutsOffAPushAtTheAckDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(), embedded.Options{})
		var pushes atomic.Int32
		took := make(chan time.Duration, 1)
		start(t, q, func(ctx context.Context, _ []byte) error {
			if pushes.Add(1) > 1 {
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			took <- time.Since(began)
			return context.Cause(ctx)
		})
		if err := q.Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if d := <-took; d != embedded.AckDeadline {
			t.Errorf("cut off after %v", d)
		}
		time.Sleep(embedded.MinBackoff + embedded.PollEvery)
		if n := pushes.Load(); n != 2 {
			t.Errorf("%d pushes, want 2", n)
		}
	})
}

func TestRunDrainsABacklogWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory()
		other := embedded.New(st, embedded.Options{})
		for i := range 250 { // more than two pages
			if err := other.Resume(t.Context(), fmt.Sprintf("run_%016d", i)); err != nil {
				t.Fatal(err)
			}
		}
		var pushes atomic.Int32
		start(t, embedded.New(st, embedded.Options{}), func(context.Context, []byte) error { pushes.Add(1); return nil })
		synctest.Wait() // no time passes
		if n := pushes.Load(); n != 250 {
			t.Errorf("%d of 250 were pushed before the first pause", n)
		}
	})
}

func TestRunGivesBackWhatItHasWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, st := newClock(), newMemory()
		failed := func(f embedded.Failure) { t.Errorf("reported %+v", f) }
		q := embedded.New(st, embedded.Options{Now: c.now, Failed: failed})
		if err := q.Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Run(ctx, func(ctx context.Context, _ []byte) error { cancel(); <-ctx.Done(); return ctx.Err() })
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, q, func(_ context.Context, envelope []byte) error {
			if _, attempt, err := queue.ParsePush(envelope); err != nil || attempt != 1 {
				t.Errorf("attempt %d, %v: the end of a process was counted", attempt, err)
			}
			return nil
		}, 1)
	})
}

func TestRunOutlivesItsStoresSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &severed{Store: newMemory()}
		var silent atomic.Int32
		q := embedded.New(st, embedded.Options{Failed: func(f embedded.Failure) {
			if f.RunID == "" && errors.Is(f.Err, store.ErrUnavailable) {
				silent.Add(1)
			}
		}})
		var pushes atomic.Int32
		start(t, q, func(context.Context, []byte) error { pushes.Add(1); return nil })
		if err := q.Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		st.cut.Store(true)
		if err := q.Resume(t.Context(), run); !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Resume without a store: %v", err)
		}
		time.Sleep(10 * time.Second)
		if silent.Load() == 0 {
			t.Error("nobody was told")
		}
		st.cut.Store(false)
		time.Sleep(2 * embedded.AckDeadline)
		if pushes.Load() == 0 {
			t.Error("nothing came after the store was back")
		}
	})
}

func deliver(t *testing.T, q *embedded.Queue, push embedded.Push, want int) {
	t.Helper()
	if n, err := q.Deliver(t.Context(), push); err != nil || n != want {
		t.Fatalf("%d pushes, %v; want %d", n, err, want)
	}
}

// start runs the queue until the test ends.
func start(t *testing.T, q *embedded.Queue, push embedded.Push) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, push) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
