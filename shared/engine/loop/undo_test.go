package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

const hold = 30 * time.Second

// held starts a run that needs an approval, and makes the decision, with an undo window.
func (w *env) held(t *testing.T, decision run.Decision, hold time.Duration) (runID string) {
	t.Helper()
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send",
		Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}}, script.Turn{Text: "Done."})
	r := start(t, w, "tell bob")
	if _, err := w.decideOn(r.RunID, decision, hold); err != nil {
		t.Fatal(err)
	}
	return r.RunID
}

func (w *env) decideOn(runID string, d run.Decision, hold time.Duration) (*run.View, error) {
	return w.loop.Resolve(context.Background(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(runID, 1),
		Decision: d, UndoWindow: hold})
}

// delivering delivers the resumes beside the test.
func (w *env) delivering(t *testing.T) (delivered func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.deliver(context.Background()) }()
	return func() {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(await.Most):
			t.Fatal("the resume does not end")
		}
	}
}

// see returns the run as its owner sees it, and the run's document.
func (w *env) see(t *testing.T, runID string) (*run.View, run.Run) {
	t.Helper()
	v, _, err := w.loop.Get(t.Context(), "ana", runID)
	if err != nil {
		t.Fatal(err)
	}
	var r run.Run
	if err := document.Decode(w.document(runID), &r); err != nil {
		t.Fatal(err)
	}
	return v, r
}

// at reports whether when is the duration after the beginning. The store's clock counts its commits in microseconds.
func at(when time.Time, after time.Duration) bool {
	return when.Sub(began.Add(after)).Abs() < time.Millisecond
}

// TestHold checks that the effect waits for the end of the undo window, without a lease.
func TestHold(t *testing.T) {
	w := newEnv(t)
	id := w.held(t, run.ApproveOnce, hold)
	delivered := w.delivering(t)
	w.asleep(t.Context())
	w.tick(hold - time.Second)
	v, r := w.see(t, id)
	if a := v.Actions[0]; v.Moving || !at(a.HeldUntil, hold) || r.Lease.Owner != "" || len(w.effects) > 0 {
		t.Errorf("moving %v, held until %v, the lease is %q's, and %v was done", v.Moving, a.HeldUntil, r.Lease.Owner,
			w.effects)
	}
	if h := w.shown(t); len(h) != 1 || h[0].RunID != id || !h[0].HeldUntil.Equal(v.Actions[0].HeldUntil) {
		t.Errorf("its user is shown as held: %+v", h)
	}
	w.tick(2 * time.Second)
	if h := w.shown(t); len(h) > 0 {
		t.Errorf("shown as held after its time: %+v", h)
	}
	delivered()
	v, _ = w.see(t, id)
	if v.Status != run.Completed || len(w.effects) != 1 || !v.Actions[0].HeldUntil.IsZero() {
		t.Errorf("the run is %s, held until %v, and %v was done", v.Status, v.Actions[0].HeldUntil, w.effects)
	}
	if _, err := w.decideOn(id, run.Undo, 0); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
		t.Errorf("an undo that is late: %v", err)
	}
}

// TestUndo undoes an approval within its undo window.
func TestUndo(t *testing.T) {
	w := newEnv(t)
	id := w.held(t, run.ApproveOnce, hold)
	delivered := w.delivering(t)
	w.asleep(t.Context())
	for range 2 { // as if the answer was lost the first time
		v, err := w.decideOn(id, run.Undo, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a := v.Actions[0]; a.Status != run.ActionRejected || a.Decision != run.Undo || v.Status != run.Completed {
			t.Errorf("the action is %s (%s), and the run %s", a.Status, a.Decision, v.Status)
		}
	}
	if _, err := w.decideOn(id, run.ApproveOnce, 0); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
		t.Errorf("a yes after it: %v", err)
	}
	w.tick(hold + time.Second)
	delivered()
	if len(w.effects) > 0 {
		t.Errorf("%v was done", w.effects)
	}
	if u := w.user(); u.Open != 0 || len(u.UndoWindows) > 0 {
		t.Errorf("counted as open: %d, and held: %v", u.Open, u.UndoWindows)
	}
}

// TestUndoWindowCancelled checks that a cancelled run shows no undo window.
func TestUndoWindowCancelled(t *testing.T) {
	w := newEnv(t)
	id := w.held(t, run.ApproveOnce, hold)
	if _, err := w.loop.Cancel(t.Context(), "ana", id); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.see(t, id); v.Status != run.Failed || len(w.shown(t)) > 0 || len(w.user().UndoWindows) > 0 {
		t.Errorf("the run is %s, and held is %+v", v.Status, w.shown(t))
	}
}

// shown returns the approvals that the user sees within their undo window.
func (w *env) shown(t *testing.T) []run.ApprovalView {
	t.Helper()
	page, err := w.rec.PendingForReader(t.Context(), "ana", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return page.Held
}

// TestUndoWindowNone checks that a decision without an undo window takes effect at once and cannot be undone.
func TestUndoWindowNone(t *testing.T) {
	for name, c := range map[string]struct {
		decision  run.Decision
		asks, min time.Duration
		held      time.Duration
	}{
		"no hold":                   {decision: run.ApproveOnce},
		"always allowed":            {decision: run.ApproveAlways, asks: hold, held: hold},
		"the operator's own":        {decision: run.ApproveOnce, min: hold, held: hold},
		"less than the operator's":  {decision: run.ApproveOnce, asks: time.Second, min: hold, held: hold},
		"more than is possible":     {decision: run.ApproveOnce, asks: time.Hour, held: approval.MaxUndoWindow},
		"more than the operator's":  {decision: run.ApproveOnce, asks: 2 * hold, min: hold, held: 2 * hold},
		"a no is never held at all": {decision: run.Reject, asks: hold, min: hold},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.loop.UndoWindow = c.min
			id := w.held(t, c.decision, c.asks)
			v, _ := w.see(t, id)
			if until := v.Actions[0].HeldUntil; c.held == 0 && !until.IsZero() || c.held > 0 && !at(until, c.held) {
				t.Errorf("it is held until %v, want %v", until, began.Add(c.held))
			}
			if c.held > 0 || c.decision == run.Reject {
				return
			}
			if _, err := w.decideOn(id, run.Undo, 0); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
				t.Errorf("an undo: %v", err)
			}
			if w.deliver(t.Context()); len(w.effects) != 1 {
				t.Errorf("%v was done", w.effects)
			}
		})
	}
	w := newEnv(t)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "send",
		Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}})
	r := start(t, w, "tell bob")
	if _, err := w.decideOn(r.RunID, run.Undo, 0); !fault.Is(err, fault.Policy, fault.CodeNotApplicable) {
		t.Errorf("an undo of what was not approved: %v", err)
	}
}

// TestUndoAlways checks that an "always allow" counts from the end of its undo window, and that an undo removes it.
func TestUndoAlways(t *testing.T) {
	for name, c := range map[string]struct {
		undo bool
		want run.Status
	}{
		"kept":       {want: run.Completed},
		"taken back": {undo: true, want: run.Awaiting},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			begin := func(text string, more ...script.Turn) *run.View {
				t.Helper()
				w.model.Then(append([]script.Turn{{Calls: []script.Call{{Name: "send",
					Args: map[string]any{"to": []string{"bob@x.org"}, "text": text}}}}}, more...)...)
				r := start(t, w, "tell bob")
				v, _ := w.see(t, r.RunID)
				return v
			}
			first := begin("ten")
			if _, err := w.decideOn(first.RunID, run.ApproveAlways, hold); err != nil {
				t.Fatal(err)
			}
			if v := begin("eleven"); v.Status != run.Awaiting {
				t.Errorf("while it can be taken back, the next one is %s", v.Status)
			}
			delivered := w.delivering(t)
			w.asleep(t.Context())
			if c.undo {
				if _, err := w.decideOn(first.RunID, run.Undo, 0); err != nil {
					t.Fatal(err)
				}
			}
			if !c.undo {
				w.model.Then(script.Turn{Text: "Done."})
			}
			w.tick(hold + time.Second)
			delivered()
			if v := begin("twelve", script.Turn{Text: "Done."}); v.Status != c.want {
				t.Errorf("later the next one is %s, want %s", v.Status, c.want)
			}
			list, err := w.rec.Allowlist(t.Context(), "ana")
			if err != nil || len(list) == 0 != c.undo {
				t.Errorf("always allowed are %v, %v", list, err)
			}
		})
	}
}

// TestUndoWindowWithLostResume loses the resume of an approval within its undo window. The sweep finds the run after
// the window, and not before.
func TestUndoWindowWithLostResume(t *testing.T) {
	w := newEnv(t)
	id := w.held(t, run.ApproveOnce, hold)
	w.queue = nil
	w.tick(hold)
	if s, err := w.loop.Sweep(t.Context()); err != nil || s.Due != 0 {
		t.Errorf("the sweep finds %d (%v) while somebody may be about to begin", s.Due, err)
	}
	w.tick(hold)
	if s, err := w.loop.Sweep(t.Context()); err != nil || s.Due != 1 {
		t.Fatalf("the sweep finds %d (%v)", s.Due, err)
	}
	deliver(t, w)
	if v, _ := w.see(t, id); v.Status != run.Completed || len(w.effects) != 1 {
		t.Errorf("the run is %s, and %v was done", v.Status, w.effects)
	}
}

// TestUndoWindowAfterRestart restarts the only process within an undo window. The new process waits for the rest of the
// window.
func TestUndoWindowAfterRestart(t *testing.T) {
	w := newEnv(t)
	id := w.held(t, run.ApproveOnce, 2*hold)
	w.queue = nil
	w.tick(hold)
	w.loop = w.process()
	if n, err := w.loop.Reclaim(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d runs are taken up (%v)", n, err)
	}
	delivered := w.delivering(t)
	w.asleep(t.Context())
	w.tick(hold + time.Second)
	delivered()
	if v, _ := w.see(t, id); v.Status != run.Completed || len(w.effects) != 1 {
		t.Errorf("the run is %s, and %v was done", v.Status, w.effects)
	}
}
