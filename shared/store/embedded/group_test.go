package embedded

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/countersign-run/countersign/shared/store"
)

// file simulates the locked file. Each transaction waits for unlock. It fails if it contains the commit that fails.
type file struct {
	group        group
	unlock       chan struct{}
	sync         chan struct{} // if set, each transaction waits for it after it has taken its commits
	transactions [][]string    // each commit by its first path
	fails        string
}

var errFull = errors.New("the disk is full")

func (f *file) write(ctx context.Context, take func() []*member) error {
	select {
	case <-f.unlock:
	case <-ctx.Done():
		return ctx.Err()
	}
	var paths []string
	for _, m := range take() {
		paths = append(paths, m.writes[0].path)
	}
	f.transactions = append(f.transactions, paths)
	if f.sync != nil {
		<-f.sync
	}
	if f.fails == "panic" {
		f.fails = ""
		panic(f.fails)
	}
	if slices.Contains(paths, f.fails) {
		return errFull
	}
	return nil
}

// commit starts a commit and returns when its caller waits.
func (f *file) commit(ctx context.Context, path string, size int) (outcome chan error) {
	outcome = make(chan error, 1)
	go func() {
		defer func() {
			if recover() != nil {
				outcome <- errLost
			}
		}()
		outcome <- f.group.join(ctx, &commit{writes: []write{{op: store.OpCreate, path: path}}, size: size}, f.write)
	}()
	synctest.Wait()
	return outcome
}

func (f *file) check(t *testing.T, want ...[]string) {
	t.Helper()
	if !slices.EqualFunc(f.transactions, want, slices.Equal[[]string]) {
		t.Errorf("the transactions were %v, want %v", f.transactions, want)
	}
	if len(f.group.queue) > 0 || f.group.led {
		t.Errorf("%d are left in the queue, and led is %v", len(f.group.queue), f.group.led)
	}
}

func grouped(t *testing.T, test func(t *testing.T, f *file)) {
	synctest.Test(t, func(t *testing.T) { test(t, &file{unlock: make(chan struct{})}) })
}

// Commits that arrive while the file is locked are written together, and none waits longer than that.
func TestTogether(t *testing.T) {
	grouped(t, func(t *testing.T, f *file) {
		a, b, big := f.commit(t.Context(), "a", 1), f.commit(t.Context(), "b", 1), f.commit(t.Context(), "big",
			store.MaxCommit)
		f.unlock <- struct{}{}
		if err := errors.Join(<-a, <-b); err != nil {
			t.Error(err)
		}
		f.unlock <- struct{}{}
		alone := f.commit(t.Context(), "alone", 1)
		f.unlock <- struct{}{}
		if err := errors.Join(<-big, <-alone); err != nil {
			t.Error(err)
		}
		f.check(t, []string{"a", "b"}, []string{"big"}, []string{"alone"})
	})
}

// The commits of a failed transaction are retried one by one, so that no commit fails because of another.
func TestCommitOfFailedTransaction(t *testing.T) {
	grouped(t, func(t *testing.T, f *file) {
		f.fails = "b"
		a, b, c := f.commit(t.Context(), "a", 1), f.commit(t.Context(), "b", 1), f.commit(t.Context(), "c", 1)
		for range 4 {
			f.unlock <- struct{}{}
		}
		if err := errors.Join(<-a, <-c); err != nil {
			t.Error(err)
		}
		if err := <-b; err != errFull {
			t.Errorf("b gave %v", err)
		}
		f.check(t, []string{"a", "b", "c"}, []string{"a"}, []string{"b"}, []string{"c"})
	})
}

// A caller that no longer waits delays no other caller, whether it leads or waits in the queue.
func TestCommitCancelled(t *testing.T) {
	grouped(t, func(t *testing.T, f *file) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := f.commit(ctx, "a", 1), f.commit(t.Context(), "b", 1)
		c, d := f.commit(ctx, "c", 1), f.commit(t.Context(), "d", 1)
		cancel()
		for _, left := range []chan error{a, c} {
			if err := <-left; err != context.Canceled {
				t.Errorf("one that left got %v", err)
			}
		}
		synctest.Wait()
		f.unlock <- struct{}{}
		if err := errors.Join(<-b, <-d); err != nil {
			t.Error(err)
		}
		f.check(t, []string{"b", "d"})
	})
}

// If the caller leaves while its commit is being written, the outcome is unknown. The commit is not retried without a
// caller.
func TestCommitCancelledMeanwhile(t *testing.T) {
	grouped(t, func(t *testing.T, f *file) {
		f.fails, f.sync = "a", make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		a, b := f.commit(t.Context(), "a", 1), f.commit(ctx, "b", 1)
		f.unlock <- struct{}{}
		synctest.Wait()
		cancel()
		if err := <-b; err != context.Canceled {
			t.Errorf("one that left got %v", err)
		}
		close(f.sync)
		f.unlock <- struct{}{}
		if err := <-a; err != errFull {
			t.Errorf("a gave %v", err)
		}
		f.check(t, []string{"a", "b"}, []string{"a"})
	})
}

// If the driver panics, only the caller that leads panics.
func TestCommitWithPanic(t *testing.T) {
	grouped(t, func(t *testing.T, f *file) {
		f.fails = "panic"
		a, b := f.commit(t.Context(), "a", 1), f.commit(t.Context(), "b", 1)
		f.unlock <- struct{}{}
		if err := <-a; err != errLost {
			t.Errorf("a gave %v", err)
		}
		f.unlock <- struct{}{}
		if err := <-b; err != nil {
			t.Error(err)
		}
		f.check(t, []string{"a", "b"}, []string{"b"})
	})
}

// On one core, callers that are ready to commit share the first one's transaction, even if the first one never has to
// wait. A few callers may be ready too late.
func TestTogetherOnOneCore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f := &file{}
	at := func(ctx context.Context, take func() []*member) error {
		var paths []string
		for _, m := range take() {
			paths = append(paths, m.writes[0].path)
		}
		f.transactions = append(f.transactions, paths)
		return nil
	}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			c := &commit{writes: []write{{op: store.OpCreate, path: strconv.Itoa(i)}}, size: 1}
			if err := f.group.join(t.Context(), c, at); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(f.transactions) > 15 {
		t.Errorf("%d transactions for 30 commits at once: %v", len(f.transactions), f.transactions)
	}
}
