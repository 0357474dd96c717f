package translog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestPublish(t *testing.T) {
	w := newWorld(t)
	w.files.Objects = translog.NewFolder(t.TempDir())
	p := w.publisher()
	w.publish(p, 0)
	total := 0
	for _, n := range []int{1, 2, 252, 1, 1, 300, 256, 1} { // 255, 256 and 257 are the edges of a tile
		w.wait(time.Minute)
		w.chain(w.clock().Add(-time.Second), n, 0)
		w.publish(p, n)
		total += n
		w.whole()
		w.publish(p, 0)
	}
	if n := len(w.files.signed); n != 8 {
		t.Errorf("%d checkpoints for 8 batches", n)
	}
}

// TestPublishLate commits entries that are older than those that were already published.
func TestPublishLate(t *testing.T) {
	w := newWorld(t)
	p := w.publisher()
	for range 30 {
		w.wait(time.Minute)
		w.chain(w.clock(), 1, 0)
		w.publish(p, 1)
	}
	w.chain(w.clock().Add(-90*time.Second), 1, 0)
	w.publish(p, 1)
	w.chain(w.clock().Add(-8*time.Minute), 2, 0) // found when the last quarter of an hour is read again
	for n := 0; n < 2; {
		w.wait(time.Minute)
		more, err := p.Publish(t.Context())
		if n += more; err != nil || w.clock().Sub(began) > 2*time.Hour {
			t.Fatalf("published %d of 2, %v", n, err)
		}
	}
	w.whole()
}

// TestPublishExisting begins a log for a store that has entries, in several calls by several processes.
func TestPublishExisting(t *testing.T) {
	const chains, length = 25, 90
	w := newWorld(t)
	for i := range chains {
		w.chain(began.AddDate(-1, 0, 0).Add(time.Duration(i%7)*time.Hour), length, 0)
	}
	calls := 0
	for total := 0; total < chains*length; calls++ {
		w.wait(time.Minute)
		n, err := w.publisher().Limit(400, 2000, 70).Publish(t.Context())
		if total += n; err != nil || n == 0 || n > 2000 {
			t.Fatalf("call %d published %d entries, %v", calls, n, err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls for %d entries; want 2", calls, chains*length)
	}
	w.chain(w.clock(), 3, 0)
	w.publish(w.publisher(), 3)
	w.whole()
}

// TestPublishKilled ends the process before and after each write of a batch. The next process must continue with the
// same checkpoints.
func TestPublishKilled(t *testing.T) {
	for _, after := range []bool{false, true} {
		kill := 0
		for done := false; !done; kill++ {
			w := newWorld(t)
			w.chain(began, 3, 0)
			w.publish(w.publisher(), 3)
			w.chain(began, 260, 0)
			writes := 0
			fail := func() (bool, bool) {
				writes++
				return writes == kill+1 && !after, writes == kill+1 && after
			}
			w.files.fail = fail
			p := w.publisher()
			p.Store = faulty.Wrap(w.store, func(ctx context.Context, call *faulty.Call, next faulty.Next) error {
				var before, later bool
				if call.Method == faulty.Commit {
					before, later = fail()
				}
				if before {
					return errKilled
				}
				if err := next(ctx); err != nil || !later {
					return err
				}
				return errKilled
			})
			_, err := p.Publish(t.Context())
			if done = err == nil; !done && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			w.files.fail = nil
			w.chain(began.Add(-time.Second), 1, 0) // would come before the others
			for range 2 {
				if _, err := w.publisher().Publish(t.Context()); err != nil {
					t.Fatalf("killed at write %d (after it: %t): %v", kill, after, err)
				}
			}
			w.whole()
		}
		if kill < 8 {
			t.Errorf("only %d writes", kill)
		}
	}
}

func TestPublishRacing(t *testing.T) {
	w := newWorld(t)
	for range 6 {
		w.wait(time.Minute)
		w.chain(w.clock(), 50, 0)
		var wg sync.WaitGroup
		for range 6 {
			p := w.publisher()
			wg.Go(func() {
				if _, err := p.Publish(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	w.publish(w.publisher(), 0)
	w.whole()
}

// TestPublishCost counts the round trips to the store.
func TestPublishCost(t *testing.T) {
	w := newWorld(t)
	counter := faulty.Count(w.store)
	p := w.publisher()
	p.Store = counter
	w.chain(began, 3, 0)
	w.publish(p, 3)
	w.wait(10 * time.Minute)
	for range 30 {
		w.publish(p, 0)
		w.wait(time.Minute)
		if got := counter.Take(); got.Get.Trips+got.Commit.Trips > 2 && w.clock().Sub(began) > 12*time.Minute {
			t.Fatalf("nothing new costs %+v", got)
		}
	}
	counter.Take()
	w.publish(p, 0)
	if got := counter.Take(); got.Query.Trips != 1 || got.Query.Docs+got.Get.Trips+got.Commit.Trips != 0 {
		t.Errorf("nothing new costs %+v; want one query", got)
	}
}

// TestPublishOlderStore puts an older copy of the store back. The log continues, and names what the copy has lost.
func TestPublishOlderStore(t *testing.T) {
	w := newWorld(t)
	w.chain(began, 5, 0)
	w.publish(w.publisher(), 5)
	copied := memory.New(w.clock)
	copyTo(t, w.store, copied)
	w.wait(time.Hour)
	lost := w.chain(w.clock(), 4, 0)
	w.publish(w.publisher(), 4)
	w.store, w.added = copied, w.added[:5]
	w.wait(time.Minute)
	w.chain(w.clock(), 2, 0)
	if _, err := w.publisher().Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := w.read(w.added...)
	if gaps := l.Gaps(w.clock()); l.N != 11 || len(gaps) != 1 || gaps[0].First != 5 || gaps[0].Last != 8 {
		t.Errorf("the log has %d entries and the gaps %v; want 11, without %d of them", l.N, gaps, len(lost))
	}
}

// TestPublishWithoutProgress deletes the document of the progress. No entry may be added twice.
func TestPublishWithoutProgress(t *testing.T) {
	w := newWorld(t)
	w.chain(began, 300, 0)
	w.chain(began, 400, 0)
	w.publish(w.publisher(), 700)
	if _, err := w.store.Commit(t.Context(), store.Delete("sweeps/log", time.Time{})); err != nil {
		t.Fatal(err)
	}
	w.chain(began, 2, 0)
	if _, err := w.publisher().Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.whole()
}

// TestPublishOlderLog puts an older copy of the log back. Nothing is signed.
func TestPublishOlderLog(t *testing.T) {
	w := newWorld(t)
	w.chain(began, 5, 0)
	w.publish(w.publisher(), 5)
	old, err := w.files.Read(t.Context(), "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	w.chain(began, 5, 0)
	w.publish(w.publisher(), 5)
	now, err := w.files.Read(t.Context(), "checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.files.Objects.Replace(t.Context(), "checkpoint", now, old); err != nil {
		t.Fatal(err)
	}
	w.chain(began, 1, 0)
	if n, err := w.publisher().Publish(t.Context()); !errors.Is(err, translog.ErrLogOlder) || n != 0 {
		t.Errorf("published %d entries, %v; want %v", n, err, translog.ErrLogOlder)
	}
}

func copyTo(t *testing.T, from, to store.Store) {
	t.Helper()
	var writes []store.Write
	for d, err := range document.All(t.Context(), from, document.AllAudit(100)) {
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, store.Create(d.Path, d.Fields, d.Data))
	}
	docs, err := from.Get(t.Context(), "sweeps/log")
	if err != nil {
		t.Fatal(err)
	}
	writes = append(writes, store.Create(docs[0].Path, docs[0].Fields, docs[0].Data))
	if _, err := to.Commit(t.Context(), writes...); err != nil {
		t.Fatal(err)
	}
}
