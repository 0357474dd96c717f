package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
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

// TestPostponedCallInOtherProcesses has no process wait for the call: each look is made by another process, which the
// sweep has woken.
func TestPostponedCallInOtherProcesses(t *testing.T) {
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

// limited is an effect whose service asks for ten minutes once before it accepts the call.
type limited struct {
	tool    *tool.Tool
	asks    time.Duration
	prepare bool // the service refuses to prepare the call, not to execute it
	calls   int
	handles []string // of the calls that were done
}

func newLimited(asks time.Duration, prepare bool, approval tool.Approval) *limited {
	l := &limited{asks: asks, prepare: prepare}
	refused := false
	busy := func(refuses bool) error {
		if l.calls++; !refuses || refused {
			return nil
		}
		refused = true
		return tool.Transient(fault.New(fault.Tool, "busy", "Too busy. Nothing was done.").After(l.asks))
	}
	prepared := 0
	l.tool = tool.Define(tool.Def[struct{}, string]{Name: "post", Description: "Posts.", SideEffect: true,
		Approval: approval, Preview: func(struct{}) tool.Preview { return tool.Preview{Title: "Post"} },
		Prepare: func(context.Context, tool.Call, struct{}) (string, error) {
			prepared++
			return fmt.Sprintf("handle %d", prepared), busy(l.prepare)
		},
		Execute: func(_ context.Context, c tool.Call, _ struct{}) (string, error) {
			if err := busy(!l.prepare); err != nil {
				return "", err
			}
			l.handles = append(l.handles, c.Handle)
			return "Posted.", nil
		},
		Reconcile: func(context.Context, tool.Call, struct{}) (tool.Verdict, string, string, error) {
			return tool.Unknown, "", "", nil
		}})
	return l
}

// TestApprovedEffectAtBusyService checks that an approved call is not tried before the time that its service
// has asked for, continues by itself then, under the same approval, and takes place once. It shows until when it waits.
func TestApprovedEffectAtBusyService(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		w := newEnv(t)
		l := newLimited(10*time.Minute, prepare, tool.Required)
		w.loop.Tools = tool.NewSet(l.tool)
		agent := w.loop.Agents.Get(run.Assistant)
		agent.Limits.Budget.Effects, agent.Limits.CountAllowed = 1, true
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "post"}}}, script.Turn{Text: "Done."})
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "post it"})
		if err == nil {
			_, err = w.decideOn(v.RunID, run.ApproveOnce, 0)
		}
		if err == nil {
			err = w.deliver(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		began := l.calls
		v, r := w.see(t, v.RunID)
		a, until := v.Actions[0], w.clock().Add(10*time.Minute)
		if v.Status != run.Executing || !a.NotBefore.Truncate(time.Second).Equal(until) ||
			a.ExecutionStatus != run.NotStarted || r.Lease.Owner != "" || len(l.handles) != 0 {
			t.Fatalf("prepare %t: the run is %s, its call %s until %s, after %v", prepare, v.Status,
				a.ExecutionStatus, a.NotBefore, l.handles)
		}
		w.tick(9 * time.Minute)
		if due := w.sweepsAnew(t); due != 0 || l.calls != began {
			t.Fatalf("prepare %t: %d runs are due before their time, %d calls", prepare, due, l.calls)
		}
		w.tick(2 * time.Minute)
		w.sweepsAnew(t)
		v, _ = w.see(t, v.RunID)
		if want := map[bool]string{false: "handle 1", true: "handle 2"}[prepare]; v.Status != run.Completed ||
			len(l.handles) != 1 || l.handles[0] != want {
			t.Errorf("prepare %t: the run is %s: %s; it was done as %q", prepare, v.Status, v.Summary, l.handles)
		}
	}
}

// TestEffectAtLongBusyService checks that a call fails at once if its service asks for longer than its approval was
// valid, or than its run has, and if no user has approved it.
func TestEffectAtLongBusyService(t *testing.T) {
	for name, tt := range map[string]struct {
		asks     time.Duration
		approval tool.Approval
		wait     time.Duration // before the user approves
	}{
		"beyond the approval": {24 * time.Hour, tool.Required, time.Minute},
		"not approved":        {10 * time.Minute, tool.NotRequired, 0},
	} {
		w := newEnv(t)
		l := newLimited(tt.asks, false, tt.approval)
		w.loop.Tools = tool.NewSet(l.tool)
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "post"}}}, script.Turn{Text: "It failed."})
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "post it"})
		w.tick(tt.wait)
		if err == nil && tt.approval == tool.Required {
			_, err = w.decideOn(v.RunID, run.ApproveOnce, 0)
		}
		if err == nil {
			err = w.deliver(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		v, _ = w.see(t, v.RunID)
		if a := v.Actions[0]; a.Status != run.ActionFailed || a.ErrorReason != "busy" || v.Status != run.Completed ||
			l.calls > 2 {
			t.Errorf("%s: the call is %s (%s), the run %s, %d calls", name, a.Status, a.Message, v.Status, l.calls)
		}
	}
}

// TestReadAtBusyService checks that a reading call waits as long as a run waits for a model.
func TestReadAtBusyService(t *testing.T) {
	for asks, want := range map[time.Duration]run.ActionStatus{20 * time.Minute: run.ActionCompleted,
		time.Hour + time.Minute: run.ActionFailed} {
		w := newEnv(t)
		w.loop.ModelPatience = time.Hour
		calls := 0
		set := tool.NewSet(tool.Define(tool.Def[struct{}, string]{Name: "look", Description: "Looks.",
			Approval: tool.NotRequired, Execute: func(context.Context, tool.Call, struct{}) (string, error) {
				if calls++; calls > 1 {
					return "There.", nil
				}
				return "", tool.Transient(fault.New(fault.Tool, "busy", "Too busy.").After(asks))
			}}))
		w.loop.Tools = set
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "look"}}}, script.Turn{Text: "Done."})
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "look"})
		if err != nil {
			t.Fatal(err)
		}
		w.tick(asks + time.Minute)
		w.sweepsAnew(t)
		if v, _ = w.see(t, v.RunID); v.Actions[0].Status != want || v.Status != run.Completed {
			t.Errorf("after %s: the call is %s, the run %s", asks, v.Actions[0].Status, v.Status)
		}
	}
}
