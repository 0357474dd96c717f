package loop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// waits starts a run whose only call looks for something every five minutes, until it is there after ready. It returns
// the run and counts the looks.
func (w *env) waits(t *testing.T, approval tool.Approval, ready time.Duration) (runID string, looks *int) {
	t.Helper()
	looks = new(int)
	look := tool.Define(tool.Def[struct{}, string]{Name: "watch", Description: "Waits.", Approval: approval,
		Execute: func(_ context.Context, c tool.Call, _ struct{}) (string, error) {
			if *looks++; w.clock().Sub(c.Since) < ready {
				return "", tool.Later(5*time.Minute, errors.New("not yet"))
			}
			return "There.", nil
		}})
	w.loop.Tools = tool.NewSet(look)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "watch"}}}, script.Turn{Text: "Done."})
	v := start(t, w, "wait for it")
	return v.RunID, looks
}

// sweepsAnew sweeps and delivers what the sweep finds, in a new process.
func (w *env) sweepsAnew(t *testing.T) (due int) {
	t.Helper()
	tools := w.loop.Tools
	w.loop = w.process()
	w.loop.Tools = tools
	s, err := w.loop.Sweep(t.Context())
	if err == nil {
		err = w.deliver(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Due
}

// TestPostponedCallRepeats has no process wait for the call: each look is made by another process, which the sweep has
// woken.
func TestPostponedCallRepeats(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		id, looks := w.waits(t, tool.NotRequired, 11*time.Minute)
		for want := 1; want <= 2; want++ {
			if v, r := w.see(t, id); *looks != want || r.Lease.Owner != "" || v.Status == run.Completed {
				t.Fatalf("after %d looks of %d the run is %s, and %q holds it", *looks, want, v.Status, r.Lease.Owner)
			}
			w.tick(4 * time.Minute)
			if _, err := w.loop.Advance(t.Context(), id, nil); err != nil || *looks != want {
				t.Fatalf("a resume that is early: %v, %d looks", err, *looks)
			}
			if due := w.sweepsAnew(t); due != 0 {
				t.Fatalf("%d runs are due before their time", due)
			}
			w.tick(2 * time.Minute)
			if due := w.sweepsAnew(t); due != 1 {
				t.Fatalf("%d runs are due", due)
			}
		}
		if v, _ := w.see(t, id); v.Status != run.Completed || *looks != 3 {
			t.Errorf("after %d looks the run is %s", *looks, v.Status)
		}
	})
}

// TestPostponedCallApprovedOnce asks once: the approval covers all looks of the call.
func TestPostponedCallApprovedOnce(t *testing.T) {
	w := newEnv(t)
	id, looks := w.waits(t, tool.Required, 4*time.Minute)
	if v, _ := w.see(t, id); v.Status != run.Awaiting || *looks != 0 {
		t.Fatalf("the run is %s after %d looks", v.Status, *looks)
	}
	if _, err := w.decideOn(id, run.ApproveOnce, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(t.Context()); err != nil || *looks != 1 {
		t.Fatalf("%v, %d looks", err, *looks)
	}
	if _, err := w.decideOn(id, run.Undo, 0); err == nil {
		t.Error("an approval without an undo window is undone")
	}
	w.tick(6 * time.Minute)
	w.sweepsAnew(t)
	if v, _ := w.see(t, id); v.Status != run.Completed || *looks != 2 {
		t.Errorf("after %d looks the run is %s", *looks, v.Status)
	}
}

// TestPostponedCallEnds cancels a waiting run, and lets another reach its deadline. Neither looks again.
func TestPostponedCallEnds(t *testing.T) {
	for name, happens := range map[string]func(w *env, id string) error{
		"a cancel": func(w *env, id string) error {
			v, err := w.loop.Cancel(context.Background(), "ana", id)
			if err == nil && v.Status != run.Failed && v.Status != run.Completed {
				t.Errorf("a cancelled run is %s", v.Status)
			}
			return err
		},
		"the deadline": func(w *env, _ string) error {
			w.tick(73 * time.Hour)
			return nil
		},
	} {
		w := newEnv(t)
		id, looks := w.waits(t, tool.NotRequired, 1000*time.Hour)
		if err := happens(w, id); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.sweepsAnew(t)
		w.tick(time.Hour)
		w.sweepsAnew(t)
		v, _ := w.see(t, id)
		if due := document.RunFieldsOf(w.document(id)).Due; v.Status == run.Executing || v.Status == run.Planning ||
			*looks != 1 || !due.IsZero() {
			t.Errorf("%s: the run is %s, due at %v, after %d looks", name, v.Status, due, *looks)
		}
	}
}
