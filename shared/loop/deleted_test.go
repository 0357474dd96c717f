package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/store"
)

// interrupted lets something happen before its n-th commit.
type interrupted struct {
	store.Store
	n      int
	happen func()
}

func (i *interrupted) Commit(ctx context.Context, w ...store.Write) ([]time.Time, error) {
	if i.n--; i.n == 0 {
		i.happen()
	}
	return i.Store.Commit(ctx, w...)
}

// TestDeletedUnderItsMover stops a process for longer than its lease, has the run cancelled and its conversation deleted,
// and lets the process go on: it finds nothing there, and leaves nothing behind.
func TestDeletedUnderItsMover(t *testing.T) {
	for n := 2; n <= 4; n++ {
		ctx := context.Background()
		w := newWorld(t)
		w.loop.Model = &asked{tool: "lookup"}
		other := *w.loop
		run := ""
		w.loop.Store = &interrupted{w.store, n, func() {
			w.tick(time.Hour)
			v, err := other.Cancel(ctx, "ana", run)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Advance(ctx, run, nil); err != nil {
				t.Fatal(err)
			}
			if err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil {
				t.Fatal(err)
			}
		}}
		_, err := w.loop.Start(ctx, loop.Ask{UID: "ana", Prompt: "look it up"}, func(n loop.Notice) { run = n.RunID })
		if !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			t.Errorf("deleted before commit %d: %v", n, err)
		}
		threads, _, err := w.rec.Threads(ctx, "ana", "", 10)
		if err != nil || len(threads) != 0 {
			t.Errorf("deleted before commit %d: %v, %d threads", n, err, len(threads))
		}
	}
}

// TestKeyOfADeletedRun uses a key again whose run was deleted: its audit is still there, so it is not begun a second time.
func TestKeyOfADeletedRun(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.loop.Model = &asked{tool: "send"}
	ask := loop.Ask{UID: "ana", Prompt: "tell bob", Key: "k", BodyHash: "h"}
	v, err := w.loop.Start(ctx, ask, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Cancel(ctx, "ana", v.RunID); err != nil {
		t.Fatal(err)
	}
	if err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Start(ctx, ask, nil); !fault.Is(err, fault.Policy, fault.CodeKeyReused) {
		t.Errorf("the key begins a run again: %v", err)
	}
}
