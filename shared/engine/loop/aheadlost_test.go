package loop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// dropped checks that one model call was cancelled, and that it is measured.
func (h *hasty) dropped(t *testing.T, measured *metrics.Metrics) {
	t.Helper()
	cancelled := 0
	for len(h.model.over) > 0 {
		if errors.Is(<-h.model.over, context.Canceled) {
			cancelled++
		}
	}
	if got := points(measured); cancelled != 1 || !strings.Contains(got, "model.discarded: 1") {
		t.Errorf("%d calls were cancelled, want 1; measured\n%s", cancelled, got)
	}
}

// TestAheadTwoStartsWithOneKey has two requests with one key. Both ask the model before either has stored the run.
// There is one run. The call of the other request is cancelled, its reader gets nothing, and the user's limits count
// it.
func TestAheadTwoStartsWithOneKey(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := newHasty(t, open(t))
		h.model.waits = true
		measured, readers := h.measured(), [2]journal{}
		var both, starts sync.WaitGroup
		both.Add(2)
		h.loop.Store = faulty.Wrap(h.store, faulty.Commits(faulty.Each(func(n int) bool { return n <= 2 },
			faulty.Before(func(*faulty.Call) { <-h.model.began; both.Done(); both.Wait() }))))
		var runs [2]string
		for i := range runs {
			starts.Go(func() {
				v, err := h.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "once", BodyHash: "once",
					Sink: readers[i].sink}, loop.Prompt{Text: "tell bob"})
				if err != nil {
					t.Error(err)
					return
				}
				runs[i] = v.RunID
			})
		}
		starts.Wait()
		if runs[0] != runs[1] || len(h.effects) != 1 || (readers[0].lines == nil) == (readers[1].lines == nil) {
			t.Errorf("runs %q, effects %q, readers\n%s\nand\n%s", runs, h.effects, &readers[0], &readers[1])
		}
		h.dropped(t, measured)
		if u := h.user(); u.Usage.Calls != h.model.asked || u.Usage.Calls != 5 {
			t.Errorf("%d calls are counted, %d were made", u.Usage.Calls, h.model.asked)
		}
	})
}

// TestAheadUserChanged changes the user between the read and the commit of a start. The start is refused, the model's
// call is cancelled, and no reader gets anything.
func TestAheadUserChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(h *hasty, u *run.User)
		class   fault.Class
		counted int
	}{
		"disabled":     {func(_ *hasty, u *run.User) { u.Disabled = true }, fault.Auth, 1},
		"deleting":     {func(_ *hasty, u *run.User) { u.Disabled, u.Deleting = true, true }, fault.Auth, 0},
		"at the limit": {func(h *hasty, u *run.User) { u.Usage.CountUse(h.clock(), 100, 0) }, fault.Policy, 101},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
				h := newHasty(t, open(t))
				h.changeUser(t, func(*run.User) {})
				measured := h.measured()
				h.model.waits = true
				h.at, h.mishap = 1, faulty.Before(func(*faulty.Call) {
					h.changeUser(t, func(u *run.User) { c.change(h, u) })
				})
				v, err := h.start(t)
				if fault.As(err).Class != c.class || strings.Contains(h.log.String(), "a reader") {
					t.Errorf("%+v, %v:\n%s", v, err, h.log)
				}
				h.dropped(t, measured)
				if u := h.user(); u.Usage.Calls != c.counted {
					t.Errorf("%d calls are counted, want %d", u.Usage.Calls, c.counted)
				}
			})
		})
	}
}

// changeUser changes the user's document, and creates it if it does not exist.
func (w *env) changeUser(t *testing.T, change func(*run.User)) {
	t.Helper()
	docs, err := w.store.Get(t.Context(), document.UserPath("ana"))
	if err != nil {
		t.Fatal(err)
	}
	u, p := run.User{UID: "ana"}, &proof{env: w}
	write := func() store.Write { return store.Create(docs[0].Path, nil, p.marshal(u)) }
	if d := docs[0]; d.Exists() {
		if err := document.Decode(d, &u); err != nil {
			t.Fatal(err)
		}
		write = func() store.Write { return store.Update(d.Path, d.Version, d.Fields, p.marshal(u)) }
	}
	change(&u)
	p.commit(write())
}

// TestAheadCommitAnswerLost loses the answer of each commit that a model call rests on. The call is dropped and made
// again, and the reader gets each word once.
func TestAheadCommitAnswerLost(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for n, rests := range commitsOfHasty {
			if !rests {
				continue
			}
			h := newHasty(t, open(t))
			measured := h.measured()
			h.at, h.mishap = n+1, faulty.Lost
			v, err := h.start(t)
			if err != nil || v.Status != run.Completed || len(h.effects) != 1 ||
				strings.Count(h.log.String(), `gets "All "`) != 1 {
				t.Fatalf("commit %d: %v, %+v, effects %q\n%s", n+1, err, v, h.effects, h.log)
			}
			got := points(measured)
			counted, asked := h.user().Usage.Calls, h.model.asked
			if counted != 5 || asked != 5 || !strings.Contains(got, "model.discarded: 1") {
				t.Errorf("commit %d: %d calls are counted, %d were made; measured\n%s", n+1, counted, asked, got)
			}
		}
	})
}

// TestAheadCancelled cancels the run while the model is asked and the commit before is under way. What the model says
// is dropped.
func TestAheadCancelled(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := newHasty(t, open(t))
		measured, other := h.measured(), *h.loop
		h.model.waits = true
		other.Store = h.store
		h.at, h.mishap = 3, faulty.Before(func(*faulty.Call) {
			if _, err := other.Cancel(t.Context(), "ana", run.KeyedRunID("ana", "once")); err != nil {
				t.Error(err)
			}
		})
		v, err := h.start(t)
		if err != nil || v.ErrorReason != "cancelled" || h.model.asked != 2 || len(h.effects) != 0 {
			t.Errorf("%v, %+v, asked %d times, effects %q", err, v, h.model.asked, h.effects)
		}
		h.dropped(t, measured)
	})
}

// TestAheadPanic has a model that panics while the commit before is under way. The panic reaches the caller's
// goroutine, which may recover it.
func TestAheadPanic(t *testing.T) {
	w := newEnv(t)
	w.loop.Model = deadly{w.model, func() { panic(faulty.Killed{}) }}
	if !faulty.Dies(func() { _, _ = w.start() }) {
		t.Error("the caller did not hear of it")
	}
}

// TestAheadCommitRaces has the first commit lose five races. Only its first try begins a model call.
func TestAheadCommitRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasty(t, onMemory(t))
		measured := h.measured()
		h.loop.Store = faulty.Wrap(h.store, faulty.Commits(faulty.Each(func(n int) bool { return n <= 5 },
			func(context.Context, *faulty.Call, faulty.Next) error {
				synctest.Wait() // until a call has begun, if one does
				return store.ErrConflict
			})))
		v, err := h.start(t)
		if got := points(measured); err != nil || v.Status != run.Completed || h.model.asked != 5 ||
			!strings.Contains(got, "model.discarded: 1") {
			t.Errorf("%v, %+v, asked %d times, measured\n%s", err, v, h.model.asked, got)
		}
	})
}

// TestAheadWithinLimits has a user whose calls of today are used up by the first call of a run. The second is not made.
func TestAheadWithinLimits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := newHasty(t, open(t))
		h.at = -1 // no commit is held
		h.loop.UserLimits.CallsPerDay = 1
		v, err := h.start(t)
		if err != nil || v.Status != run.Failed || h.model.asked != 1 || h.user().Usage.Calls != 1 {
			t.Errorf("%v, %+v, asked %d times", err, v, h.model.asked)
		}
	})
}
