package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestRunWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(t), embedded.Options{})
		arrived := make(chan time.Time)
		start(t, q, func(context.Context, []byte) error { arrived <- time.Now(); return nil })
		synctest.Wait() // it has looked, found nothing, and sleeps
		asked := time.Now()
		if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
			t.Fatal(err)
		}
		if late := (<-arrived).Sub(asked); late != 0 {
			t.Errorf("%v late", late)
		}
	})
}

func TestRunPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(t)
		arrived := make(chan time.Time)
		start(t, embedded.New(st, embedded.Options{}),
			func(context.Context, []byte) error { arrived <- time.Now(); return nil })
		synctest.Wait()
		asked := time.Now()
		if err := embedded.New(st, embedded.Options{}).Resume(t.Context(), queue.Message{RunID: run}); err != nil {
			t.Fatal(err)
		}
		if late := (<-arrived).Sub(asked); late > embedded.PollEvery {
			t.Errorf("%v late", late)
		}
	})
}

func TestRunPushLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(t), embedded.Options{})
		var mu sync.Mutex
		var now, most, done int
		count := func(begun, ended int) {
			mu.Lock()
			defer mu.Unlock()
			now, done = now+begun-ended, done+ended
			most = max(most, now)
		}
		start(t, q, func(context.Context, []byte) error {
			count(1, 0)
			time.Sleep(time.Minute)
			count(0, 1)
			return nil
		})
		const all = 2*embedded.Concurrency + 2
		for i := range all {
			if err := q.Resume(t.Context(), queue.Message{RunID: fmt.Sprintf("run_%016d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3*time.Minute + time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most != embedded.Concurrency || done != all {
			t.Errorf("%d pushes at a time, %d done; want %d and %d", most, done, embedded.Concurrency, all)
		}
	})
}

func TestRunAckDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := embedded.New(newMemory(t), embedded.Options{})
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
		if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
			t.Fatal(err)
		}
		if d := <-took; d != embedded.AckDeadline {
			t.Errorf("cut off after %v", d)
		}
		time.Sleep(embedded.MinBackoff + 2*embedded.PollEvery)
		if n := pushes.Load(); n != 2 {
			t.Errorf("%d pushes, want 2", n)
		}
	})
}

func TestRunBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory(t)
		other := embedded.New(st, embedded.Options{})
		for i := range 250 { // more than two pages
			if err := other.Resume(t.Context(), queue.Message{RunID: fmt.Sprintf("run_%016d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		var pushes atomic.Int32
		start(t, embedded.New(st, embedded.Options{}),
			func(context.Context, []byte) error { pushes.Add(1); return nil })
		synctest.Wait() // no time passes
		if n := pushes.Load(); n != 250 {
			t.Errorf("%d of 250 were pushed before the first pause", n)
		}
	})
}

func TestRunClaimsAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, st := newClock(), newMemory(t)
		failed := func(f embedded.Failure) { t.Errorf("reported %+v", f) }
		q := embedded.New(st, embedded.Options{Now: c.now, Failed: failed})
		if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Run(ctx, func(ctx context.Context, _ []byte) error { cancel(); <-ctx.Done(); return ctx.Err() })
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, q, func(_ context.Context, envelope []byte) error {
			if d, err := queue.ParsePush(envelope, ""); err != nil || d.Attempt != 1 {
				t.Errorf("attempt %d, %v: the end of a process was counted", d.Attempt, err)
			}
			return nil
		}, 1)
	})
}

func TestRunWithSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faulty.Wrap(newMemory(t))
		var silent atomic.Int32
		q := embedded.New(st, embedded.Options{Failed: func(f embedded.Failure) {
			if f.RunID == "" && errors.Is(f.Err, store.ErrUnavailable) {
				silent.Add(1)
			}
		}})
		var pushes atomic.Int32
		start(t, q, func(context.Context, []byte) error { pushes.Add(1); return nil })
		if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
			t.Fatal(err)
		}
		cut(st)
		if err := q.Resume(t.Context(), queue.Message{RunID: run}); !fault.Is(err, fault.Tool,
			fault.CodeStoreUnavailable) ||
			!errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Resume without a store: %v", err)
		}
		time.Sleep(10 * time.Second)
		if silent.Load() == 0 {
			t.Error("the error was not reported")
		}
		st.Set()
		time.Sleep(2 * embedded.AckDeadline)
		if pushes.Load() == 0 {
			t.Error("nothing came after the store was back")
		}
	})
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
