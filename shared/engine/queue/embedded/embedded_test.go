package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
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

func TestBackoffAsPubSub(t *testing.T) {
	c := newClock()
	var failures []embedded.Failure
	q := embedded.New(newMemory(t), embedded.Options{Now: c.now, ID: counter(),
		Failed: func(f embedded.Failure) { failures = append(failures, f) }})
	if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	var attempts []int
	fails := func(_ context.Context, envelope []byte) error {
		d, err := queue.ParsePush(envelope, "")
		if err != nil || d.RunID != run {
			t.Fatalf("pushed %+v, %v", d, err)
		}
		attempts = append(attempts, d.Attempt)
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

func TestClaimedMessage(t *testing.T) {
	c, st := newClock(), newMemory(t)
	one := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	other := embedded.New(st, embedded.Options{Now: c.now})
	if err := one.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	deliver(t, one, func(context.Context, []byte) error {
		c.add(embedded.AckDeadline - time.Microsecond)
		deliver(t, other, acks, 0)
		c.add(time.Microsecond)
		deliver(t, other, acks, 1)
		return nil // too late, without harm: the other process has deleted the message
	}, 1)
	c.add(time.Hour)
	deliver(t, one, acks, 0)
}

func TestAcknowledgedMessage(t *testing.T) {
	c, st := newClock(), newMemory(t)
	q := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
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
	q := embedded.New(newMemory(t), embedded.Options{Now: c.now})
	var want, got []string
	for i := range 20 {
		id := fmt.Sprintf("run_%016d", i)
		want = append(want, id)
		if err := q.Resume(t.Context(), queue.Message{RunID: id}); err != nil {
			t.Fatal(err)
		}
		c.add(time.Millisecond)
	}
	deliver(t, q, func(_ context.Context, envelope []byte) error {
		d, err := queue.ParsePush(envelope, "")
		got = append(got, d.RunID)
		return err
	}, 20)
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

func TestDeliverWithUnreadableDocument(t *testing.T) {
	c, st := newClock(), newMemory(t)
	q := embedded.New(st, embedded.Options{Now: c.now, ID: counter()})
	if _, err := st.Commit(t.Context(),
		store.Create("queue/a", map[string]any{"due": c.now()}, []byte(`[]`))); err != nil {
		t.Fatal(err)
	}
	if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	var good, refused int
	deliver(t, q, func(_ context.Context, envelope []byte) error {
		if d, err := queue.ParsePush(envelope, ""); err != nil {
			refused++
		} else if d.RunID == run {
			good++
		}
		return nil
	}, 2)
	if good != 1 || refused != 1 {
		t.Errorf("%d good, %d refused", good, refused)
	}
}

func deliver(t *testing.T, q *embedded.Queue, push embedded.Push, want int) {
	t.Helper()
	if n, err := q.Deliver(t.Context(), push); err != nil || n != want {
		t.Fatalf("%d pushes, %v; want %d", n, err, want)
	}
}
