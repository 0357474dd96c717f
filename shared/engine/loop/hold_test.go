package loop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// beat is the interval at which a lease is renewed.
const beat = 20 * time.Second

// nap is a heartbeat's wait for the test's clock.
type nap struct {
	until time.Time
	over  chan struct{}
}

// sleep returns at once from the short wait between two attempts. A heartbeat's wait lasts until the test's clock has
// moved on.
func (w *env) sleep(ctx context.Context, d time.Duration) error {
	if d < beat {
		return ctx.Err()
	}
	w.mu.Lock()
	n := nap{w.now.Add(d), make(chan struct{})}
	w.naps = append(w.naps, n)
	w.mu.Unlock()
	select {
	case <-n.over:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.naps = slices.DeleteFunc(w.naps, func(other nap) bool { return other == n })
		return ctx.Err()
	}
}

// asleep waits until the heartbeat has nothing to do before the clock moves on.
func (w *env) asleep(ctx context.Context) {
	w.t.Helper()
	await.That(w.t, "somebody keeps the lease", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.naps) > 0 || ctx.Err() != nil
	})
}

// works is a tool's work of n beats. It calls each with the number of every finished beat. It stops early when its
// context ends, and returns the number of finished beats.
func (w *env) works(ctx context.Context, n int, each func(n int)) int {
	for i := 1; i <= n; i++ {
		w.asleep(ctx)
		w.tick(beat)
		w.asleep(ctx)
		if ctx.Err() != nil {
			return i
		}
		each(i)
	}
	return n
}

// long is an effect that may take half an hour and needs no approval. Its Reconcile answers like that of send.
func (w *env) long(interruptible bool, execute func(ctx context.Context, c tool.Call) error) {
	d := w.sendDef("long")
	d.Timeout, d.Approval, d.Interruptible = 30*time.Minute, tool.NotRequired, interruptible
	d.Targets = nil
	d.Execute = func(ctx context.Context, c tool.Call, _ sendArgs) (sendResult, error) {
		if err := execute(ctx, c); err != nil {
			return sendResult{}, err
		}
		w.did("long")
		return sendResult{ID: "1"}, nil
	}
	w.loop.Tools["long"] = tool.Define(d)
	w.loop.Model = &asked{tool: "long"}
}

// lease returns the run's lease and the time by the store's clock.
func (w *env) lease(runID string) (run.Lease, time.Time) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), document.RunPath(runID))
	if err != nil {
		w.t.Fatal(err)
	}
	var r run.Run
	if err := document.Decode(docs[0], &r); err != nil {
		w.t.Fatal(err)
	}
	return r.Lease, docs[0].ReadTime
}

func (w *env) start() (*run.View, error) {
	return w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
}

// TestLeaseRenewedInLongStep has an effect of five minutes. Its lease never lasts longer than 75 seconds, never
// expires, and costs one commit each 20 seconds and no read.
func TestLeaseRenewedInLongStep(t *testing.T) { onEachStore(t, renewsItsLease) }

func renewsItsLease(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	count := faulty.Count(w.store)
	w.loop.Store = count
	var kept faulty.Counts
	w.long(false, func(ctx context.Context, c tool.Call) error {
		count.Take()
		w.works(ctx, 15, func(n int) {
			l, now := w.lease(c.RunID)
			if left := l.Until.Sub(now); left < 50*time.Second || left > 76*time.Second {
				t.Errorf("after %d beats the lease lasts for another %s", n, left)
			}
			if _, err := w.process().Advance(ctx, c.RunID, nil); !unit.Held(err) {
				t.Errorf("after %d beats another process may move the run: %v", n, err)
			}
		})
		kept = count.Take()
		return nil
	})
	v, err := w.start()
	if err != nil || v.Status != run.Completed || len(w.effects) != 1 {
		t.Fatalf("%v %+v, done %d times", err, v, len(w.effects))
	}
	if kept.Commit.Trips != 15 || kept.Commit.Docs != 15 || kept.Get.Trips != 0 {
		t.Errorf("300 seconds cost %+v", kept)
	}
	if after := count.Take(); after.Commit.Trips != 2 || after.Get.Trips != 0 {
		t.Errorf("the outcome and the end cost %+v: they were not decided on what the heartbeat has committed", after)
	}
}

// TestLeaseNotRenewedInShortStep has a tool whose timeout fits into one lease.
func TestLeaseNotRenewedInShortStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newEnv(t)
		w.long(true, func(context.Context, tool.Call) error {
			synctest.Wait() // the lease's heartbeat would sleep now
			if len(w.naps) != 0 {
				t.Error("somebody keeps its lease")
			}
			return nil
		})
		w.loop.Tools["long"].Timeout = time.Minute
		if v, err := w.start(); err != nil || v.Status != run.Completed {
			t.Fatalf("%v %+v; want v.Status %v", err, v, run.Completed)
		}
	})
}

// TestCancelDuringLongStep cancels the run, or lets its deadline pass, while a tool works. An interruptible tool's
// context ends within a third of the lease's period, and the tool reports its outcome. Any other tool finishes its
// work.
func TestCancelDuringLongStep(t *testing.T) { onEachStore(t, seesACancel) }

func seesACancel(t *testing.T, open func(testing.TB) *env) {
	stop := map[string]func(w *env, runID string){
		"cancel": func(w *env, runID string) {
			if _, err := w.process().Cancel(context.Background(), "ana", runID); err != nil {
				t.Error(err)
			}
		},
		"deadline": func(*env, string) {},
	}
	for name, end := range stop {
		for _, interruptible := range []bool{true, false} {
			w := open(t)
			if name == "deadline" {
				w.assistant().Limits.Deadline = 3*beat + time.Second
			}
			worked := 0
			var why error
			w.long(interruptible, func(ctx context.Context, c tool.Call) error {
				worked = w.works(ctx, 6, func(n int) {
					if n == 3 {
						end(w, c.RunID)
					}
				})
				if why = context.Cause(ctx); why == nil {
					return nil
				}
				return tool.Partial("half of it", fault.New(fault.Tool, "interrupted", "It was interrupted."))
			})
			v, err := w.start()
			_, events, getErr := w.loop.Get(context.Background(), "ana", v.RunID)
			if err = errors.Join(err, getErr); err != nil || v.Status != run.Failed ||
				string(v.ErrorReason) != map[string]string{"cancel": "cancelled",
					"deadline": "deadline"}[name] {
				t.Fatalf("%s: %v %+v", name, err, v)
			}
			a := v.Actions[0]
			switch {
			case interruptible && (worked != 4 || !errors.Is(why, context.Canceled) ||
				a.ExecutionStatus != run.FailedKnown || a.ErrorReason != "interrupted" ||
				!slices.ContainsFunc(events, func(e run.Event) bool {
					return e.Finished != nil && string(e.Finished.Result) == `"half of it"`
				})):
				t.Errorf("%s: an interruptible tool worked %d beats, until %v: %+v", name, worked, why, a)
			case !interruptible && (worked != 6 || why != nil || a.ExecutionStatus != run.Succeeded):
				t.Errorf("%s: a tool worked %d beats, until %v: %+v", name, worked, why, a)
			}
		}
	}
}

// TestCancelledEffectUnknown has an interrupted tool that reports only the end of its context. Reconcile is called for
// the outcome, and then the effect is left to the user.
func TestCancelledEffectUnknown(t *testing.T) {
	for _, c := range []struct {
		settle string
		status run.Execution
	}{{"done", run.Succeeded}, {"not_done", run.UnknownState}, {"unknown", run.UnknownState}} {
		w := newEnv(t)
		w.settle = []string{c.settle}
		tries := 0
		w.long(true, func(ctx context.Context, call tool.Call) error {
			tries++
			w.works(ctx, 3, func(int) { _, _ = w.process().Cancel(context.Background(), "ana", call.RunID) })
			return ctx.Err()
		})
		v, err := w.start()
		if err != nil || v.Actions[0].ExecutionStatus != c.status || tries != 1 {
			t.Errorf("%s: %v, tried %d times, %+v", c.settle, err, tries, v)
		}
	}
}

// TestCancelDuringRetries has a tool that is not interruptible and is busy while its run is cancelled. It is not tried
// again.
func TestCancelDuringRetries(t *testing.T) {
	w, tries := newEnv(t), 0
	w.long(false, func(ctx context.Context, c tool.Call) error {
		tries++
		w.works(ctx, 2, func(int) { _, _ = w.process().Cancel(context.Background(), "ana", c.RunID) })
		return tool.Transient(errors.New("busy"))
	})
	if v, err := w.start(); err != nil || v.ErrorReason != "cancelled" || tries != 1 {
		t.Errorf("%v, tried %d times, %+v", err, tries, v)
	}
}

// TestCancelDuringModelCall cancels the run during a long model call.
func TestCancelDuringModelCall(t *testing.T) {
	w := newEnv(t)
	w.assistant().Limits.ModelTimeout = 10 * time.Minute
	w.loop.Model = thinking{w.model, func(ctx context.Context) error {
		w.works(ctx, 6, func(n int) {
			if n == 2 {
				runs := w.waiting()
				_, _ = w.process().Cancel(context.Background(), "ana", runs[0])
			}
		})
		return ctx.Err()
	}}
	if v, err := w.start(); err != nil || v.ErrorReason != "cancelled" {
		t.Errorf("%v %+v; want v.ErrorReason “cancelled”", err, v)
	}
}

// thinking is a model that answers nothing.
type thinking struct {
	*script.Model
	do func(context.Context) error
}

func (m thinking) Generate(ctx context.Context, _ model.Request, _ func(string)) (*model.Reply, error) {
	if err := model.AwaitCommit(ctx); err != nil {
		return nil, err
	}
	return nil, m.do(ctx)
}

// waiting returns the runs that have not ended.
func (w *env) waiting() (ids []string) {
	w.t.Helper()
	for d, err := range document.Waiting(context.Background(), w.store, 10) {
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, document.ID(d))
	}
	return ids
}

// TestKilledBetweenRenewals kills the process in the fifth minute of an effect. Another process takes up the run as
// soon as after a short step, and not before.
func TestKilledBetweenRenewals(t *testing.T) { onEachStore(t, killedBetweenRenewals) }

func killedBetweenRenewals(t *testing.T, open func(testing.TB) *env) {
	ctx, w := context.Background(), open(t)
	w.settle = []string{"done"}
	runID := ""
	w.long(true, func(ctx context.Context, c tool.Call) error {
		runID = c.RunID
		w.works(ctx, 14, func(int) {})
		w.did("long")
		runtime.Goexit()
		return nil
	})
	dying(func() { _, _ = w.start(); t.Error("it lived") })
	for _, c := range []struct {
		later time.Duration
		due   int
	}{{50 * time.Second, 0}, {30 * time.Second, 1}} {
		w.tick(c.later)
		if s, err := w.loop.Sweep(ctx); err != nil || s.Due != c.due {
			t.Fatalf("%s later: %v %+v", c.later, err, s)
		}
	}
	deliver(t, w)
	v, _, err := w.loop.Get(ctx, "ana", runID)
	if err != nil || v.Status != run.Completed || len(w.effects) != 1 {
		t.Errorf("%v %+v, done %d times", err, v, len(w.effects))
	}
}

// TestDecisionsDuringALongStep decides about another call of the run between two renewals, and just as a renewal is
// committed. Both writes are kept.
func TestDecisionsDuringALongStep(t *testing.T) { onEachStore(t, decisionsDuringALongStep) }

func decisionsDuringALongStep(t *testing.T, open func(testing.TB) *env) {
	for _, racing := range []bool{false, true} {
		w := open(t)
		decide, runID := false, ""
		approve := func() {
			decide = false
			if _, err := w.process().Resolve(context.Background(), approval.Resolution{UID: "ana",
				ApprovalID: run.ApprovalID(runID, 1), Decision: run.ApproveOnce}); err != nil {
				t.Error(err)
			}
		}
		w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Before(func(*faulty.Call) {
			if decide {
				approve() // another process's store is w.store
			}
		})))
		w.long(false, func(ctx context.Context, c tool.Call) error {
			runID = c.RunID
			w.works(ctx, 5, func(n int) {
				switch {
				case n == 2 && racing:
					decide = true
				case n == 2:
					approve()
				}
				if l, now := w.lease(runID); l.Until.Sub(now) < 50*time.Second {
					t.Errorf("after %d beats the lease lasts until %s, and it is %s", n, l.Until, now)
				}
			})
			return nil
		})
		w.loop.Model = w.model
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "long", Args: args([]string{"bob@x.org"}, "ten")},
			{Name: "send", Args: args([]string{"bob@x.org"}, "ten")}}}, script.Turn{Text: "Both."})
		v, err := w.start()
		if err != nil || v.Status != run.Completed || len(w.effects) != 2 || v.Actions[1].Decision != run.ApproveOnce {
			t.Fatalf("racing %t: %v %+v, done %v", racing, err, v, w.effects)
		}
	}
}

// TestLeaseRenewalDuringOutage lets the store refuse all commits for two renewals, which the step outlasts, and for
// longer than its lease. After the lease another process may have taken over the run, so the step's context ends before
// that.
func TestLeaseRenewalDuringOutage(t *testing.T) {
	for beats, ends := range map[int]bool{2: false, 5: true} {
		w := newEnv(t)
		st := faulty.Wrap(w.store)
		w.loop.Store = st
		worked := 0
		var why error
		w.long(false, func(ctx context.Context, c tool.Call) error {
			worked = w.works(ctx, 8, func(n int) {
				switch n {
				case 1:
					st.Set(faulty.Commits(faulty.Down))
				case 1 + beats:
					st.Set()
				}
			})
			if l, now := w.lease(c.RunID); !now.Before(l.Until) {
				t.Errorf("%d beats: the tool still works when the lease has lapsed", beats)
			}
			st.Set()
			why = context.Cause(ctx)
			return ctx.Err()
		})
		v, err := w.start()
		want := run.Succeeded
		if ends {
			want = run.UnknownState
		}
		if err != nil || v.Actions[0].ExecutionStatus != want || (why != nil) != ends || ends && worked != 4 {
			t.Errorf("%d beats: %v, worked %d, until %v: %+v", beats, err, worked, why, v.Actions[0])
		}
	}
}

// stopped is a process whose heartbeat does not run until goOn is called.
func stopped(w *env) (goOn func()) {
	gate := make(chan struct{})
	w.loop.Sleep = func(ctx context.Context, d time.Duration) error {
		if d < beat {
			return ctx.Err()
		}
		select {
		case <-gate:
			gate = nil // once; then it sleeps
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return func() { close(gate) }
}

// TestLeaseLostDuringEffect stops a process in the middle of a long effect for longer than its lease. Another process
// settles the effect meanwhile. When the first one wakes up, its tool's context ends, interruptible or not, and no
// result of the tool is recorded over the outcome.
func TestLeaseLostDuringEffect(t *testing.T) { onEachStore(t, zombieRecordsNothing) }

func zombieRecordsNothing(t *testing.T, open func(testing.TB) *env) {
	for _, settled := range []string{"done", "unknown"} {
		for _, wakes := range []bool{true, false} {
			ctx, w := context.Background(), open(t)
			w.settle = []string{settled}
			other, runID := w.process(), ""
			other.Model = &asked{tool: "long"}
			goOn := stopped(w)
			w.long(false, func(ctx context.Context, c tool.Call) error {
				runID = c.RunID
				other.Tools = w.loop.Tools
				w.tick(76 * time.Second)
				if _, err := other.Advance(ctx, runID, nil); err != nil {
					t.Error(err)
				}
				if wakes {
					goOn()
					<-ctx.Done()
					if why := context.Cause(ctx); errors.Is(why, context.DeadlineExceeded) {
						t.Errorf("its context ends with %v", why)
					}
				}
				return fault.New(fault.Tool, "refused", "The zombie was refused.")
			})
			_, err := w.start()
			v, events, getErr := w.loop.Get(ctx, "ana", runID)
			if err != nil || getErr != nil {
				t.Fatalf("%s: %v %v; want getErr nil", settled, err, getErr)
			}
			outcomes := 0
			for _, e := range events {
				if e.Type == run.ActionFinished {
					outcomes++
				}
			}
			want := map[string]run.Execution{"done": run.Succeeded, "unknown": run.UnknownState}[settled]
			if outcomes != 1 || v.Actions[0].ExecutionStatus != want {
				t.Errorf("%s, %d outcomes: %+v", settled, outcomes, v.Actions[0])
			}
		}
	}
}

// TestLeaseLostAfterIntent stops a process right after the intent of a long effect, for longer than its lease. Another
// process finds that nothing has happened and carries out the effect. The first one must not carry it out as well.
func TestLeaseLostAfterIntent(t *testing.T) { onEachStore(t, zombieDoesNotAct) }

func zombieDoesNotAct(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	w.settle = []string{"not_done"}
	stopped(w)
	w.long(true, func(context.Context, tool.Call) error { return nil })
	other := w.process()
	other.Tools, other.Model = w.loop.Tools, w.loop.Model
	overtaken := false
	w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.After(func(c *faulty.Call) {
		if overtaken || !hasIntent(c.Writes) {
			return
		}
		overtaken = true
		w.tick(76 * time.Second)
		if _, err := other.Advance(context.Background(), w.waiting()[0], nil); err != nil {
			t.Error(err)
		}
	})))
	v, err := w.start()
	if err != nil || !overtaken || v.Status != run.Completed || len(w.effects) != 1 {
		t.Errorf("%v %+v, overtaken: %t, done %d times", err, v, overtaken, len(w.effects))
	}
}

// TestLeaseLapsedAfterIntent stops a process right after the intent of an effect, for longer than its lease. If no
// other process takes the run over, only this one could make the call, and it has not. So it makes the call under a new
// lease, or closes the call if the run was cancelled meanwhile. It asks neither the tool, which cannot tell, nor the
// user. If another process took the run over and died after its own intent, the tool is asked.
func TestLeaseLapsedAfterIntent(t *testing.T) { onEachStore(t, unmadeCallIsMade) }

func unmadeCallIsMade(t *testing.T, open func(testing.TB) *env) {
	for name, c := range map[string]struct {
		meanwhile func(w *env, runID string) error
		status    run.Status
		execution run.Execution
		effects   int
		asked     int // how often the tool is asked
	}{
		"alone": {func(*env, string) error { return nil }, run.Completed, run.Succeeded, 1, 0},
		"cancelled": {func(w *env, runID string) error {
			_, err := w.process().Cancel(context.Background(), "ana", runID)
			return err
		}, run.Failed, run.FailedKnown, 0, 0},
		"taken over": {func(w *env, runID string) error {
			other := w.process()
			other.Tools, other.Store = w.loop.Tools, mortal(w.store, 2, true)
			died, err := mortally(func() error {
				_, err := other.Advance(context.Background(), runID, nil)
				return err
			})
			if !died {
				return fmt.Errorf("the other process lives: %w", err)
			}
			w.tick(3 * time.Minute)
			return nil
		}, run.Awaiting, run.UnknownState, 0, 2},
	} {
		w, paused := open(t), false
		w.settle = []string{"not_done", "unknown"}
		stopped(w)
		w.long(true, func(context.Context, tool.Call) error { return nil })
		w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.After(func(call *faulty.Call) {
			if paused || !hasIntent(call.Writes) {
				return
			}
			paused = true
			w.tick(76 * time.Second)
			if err := c.meanwhile(w, w.waiting()[0]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})))
		v, err := w.start()
		if err != nil || !paused || v.Status != c.status || v.Actions[0].ExecutionStatus != c.execution {
			t.Errorf("%s: paused %t, %v: %+v; want the run %s and the call %s", name, paused, err, v, c.status,
				c.execution)
		}
		if asked := 2 - len(w.settle); len(w.effects) != c.effects || asked != c.asked {
			t.Errorf("%s: done %d times, the tool was asked %d times; want %d and %d", name, len(w.effects), asked,
				c.effects, c.asked)
		}
	}
}

// TestLeaseLapsedRenewed delays the answer to the commit of the model's turn until the lease that it took has expired.
// The process must not repeat the call for ever without a commit.
func TestLeaseLapsedRenewed(t *testing.T) { onEachStore(t, lapsedLeaseIsRenewed) }

func lapsedLeaseIsRenewed(t *testing.T, open func(testing.TB) *env) {
	for _, name := range []string{"lookup", "long"} {
		w := open(t)
		w.settle = []string{"not_done"}
		w.long(false, func(context.Context, tool.Call) error { return nil })
		asked, late, looks := &asked{tool: name}, false, atomic.Int64{}
		w.loop.Model = asked
		w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.After(func(*faulty.Call) {
			if asked.n == 1 && !late {
				late = true
				w.tick(76 * time.Second)
			}
		})))
		clock := w.loop.Now
		w.loop.Now = func() time.Time {
			if looks.Add(1) > 10_000 {
				t.Fatalf("%s is tried for ever", name)
			}
			return clock()
		}
		v, err := w.start()
		if err != nil || !late || v.Status != run.Completed || v.Actions[0].ExecutionStatus != run.Succeeded {
			t.Errorf("%s: %v %+v, late: %t", name, err, v, late)
		}
	}
}

// hasIntent reports whether the commit has an audit entry of an intent.
func hasIntent(writes []store.Write) bool {
	return slices.ContainsFunc(writes, func(w store.Write) bool {
		var e struct {
			Kind string `json:"kind"`
		}
		return document.Decode(w.Doc, &e) == nil && e.Kind == "intent"
	})
}
