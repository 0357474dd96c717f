package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAnswerKilledAtCommit kills the process before and after each commit of a run whose call the client carries out:
// of its start, of the answer, and of the steps after it. The client repeats its answer until it is accepted.
func TestAnswerKilledAtCommit(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
					v := killedWithClient(t, open(t), n, after, (*env).answerAgain)
					if a := v.Actions[0]; v.Status != run.Completed || a.Status != run.ActionCompleted {
						t.Errorf("the run is %s (%s), and its call %s", v.Status, v.Message, a.Status)
					}
				})
			}
		}
	})
}

// TestUnansweredCallKilledAtCommit does the same to a run whose client does not answer.
func TestUnansweredCallKilledAtCommit(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
					v := killedWithClient(t, open(t), n, after, func(w *env, _ *run.View) error {
						w.tick(6 * time.Minute)
						_, err := w.loop.Sweep(context.Background())
						return err
					})
					if a := v.Actions[0]; v.Status != run.Completed || a.ErrorReason != "not_answered" {
						t.Errorf("the run is %s (%s), and its call %s %s", v.Status, v.Message, a.Status, a.ErrorReason)
					}
				})
			}
		}
	})
}

func (w *env) answerAgain(v *run.View) error {
	if len(v.Actions) == 0 { // it does not wait yet
		return nil
	}
	_, err := w.loop.Answer(context.Background(), "ana", v.RunID,
		effect.CallAnswer{ActionID: v.Actions[0].ActionID, Result: json.RawMessage(`{"ok":true}`)})
	return err
}

func killedWithClient(t *testing.T, w *env, n int, after bool,
	then func(*env, *run.View) error) *run.View {
	t.Helper()
	ctx := context.Background()
	w.loop.Tools["click"] = remote(t)
	w.loop.Store, w.loop.Model = mortal(w.store, n, after), &asked{tool: "click"}
	life := func() error {
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}, loop.Prompt{Text: "click"})
		if err != nil {
			return err
		}
		if err := then(w, v); err != nil {
			return err
		}
		return w.deliver(ctx)
	}
	if died, err := mortally(life); err != nil || !died {
		t.Fatalf("%v, and the kill happened: %v", err, died)
	}
	for range 3 { // other processes, later, with every message delivered again
		w.tick(3 * time.Minute)
		if _, err := w.loop.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.deliver(ctx); err != nil && !unit.Held(err) {
			t.Fatal(err)
		}
		if err := life(); err != nil && !fault.Is(err, fault.Policy, fault.CodeNotWaiting) {
			t.Fatal(err)
		}
	}
	v, _, err := w.loop.Get(ctx, "ana", run.KeyedRunID("ana", "k1"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestWriteOnKilledAtCommit kills the process at each commit of a run whose user sends another message and leaves an
// earlier run's call. Whatever is lost, the earlier run waits no longer than its call's own time.
func TestWriteOnKilledAtCommit(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("after=%v/%d", after, n),
					func(t *testing.T) { killedWritingOn(t, open(t), n, after) })
			}
		}
	})
}

func killedWritingOn(t *testing.T, w *env, n int, after bool) {
	ctx := context.Background()
	w.loop.Tools["click"] = remote(t)
	w.loop.Model = &asked{tool: "click"}
	first, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "click"})
	if err != nil || len(first.Calls) != 1 {
		t.Fatalf("%v %+v; want len(first.Calls) 1", err, first)
	}
	w.loop.Store = mortal(w.store, n, after)
	w.loop.Tools["lookup"], w.loop.Model = w.lookup(), &asked{tool: "lookup"}
	on := loop.StartRequest{UID: "ana", ThreadID: first.ThreadID, Key: "k2", BodyHash: "h"}
	and := loop.Prompt{Text: "and?"}
	died, err := mortally(func() error { _, err := w.loop.Start(ctx, on, and); return err })
	if err != nil || !died {
		t.Fatalf("%v, and the kill happened: %v", err, died)
	}
	if _, err := w.loop.Start(ctx, on, and); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.tick(6 * time.Minute)
		if _, err := w.loop.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		deliver(t, w)
	}
	for _, id := range []string{first.RunID, run.KeyedRunID("ana", "k2")} {
		if v, _, err := w.loop.Get(ctx, "ana", id); err != nil || v.Status != run.Completed {
			t.Errorf("%v, and the run is %s (%s)", err, v.Status, v.Message)
		}
	}
	if v, _, _ := w.loop.Get(ctx, "ana", first.RunID); v.Actions[0].ErrorReason != "not_answered" {
		t.Errorf("the call is %+v", v.Actions[0])
	}
}

// TestWriteOnWithWaitingCalls checks that a run of another thread and an action of the same thread leave waiting calls
// alone.
func TestWriteOnWithWaitingCalls(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Tools["click"] = remote(t)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "click", Args: map[string]any{}}}},
		script.Turn{Text: "Hello."})
	first := start(t, w, "click")
	same := loop.StartRequest{UID: "ana", ThreadID: first.ThreadID}
	if _, err := w.loop.StartCall(ctx, same, sending("ten", true)); err != nil {
		t.Fatal(err)
	}
	start(t, w, "hello")
	if v, _, err := w.loop.Get(ctx, "ana", first.RunID); err != nil || len(v.Calls) != 1 {
		t.Errorf("%v %+v; want len(v.Calls) 1", err, v)
	}
}

// TestClientEffectInAudit lets the client carry out an approved effect. The audit records the user who allowed it, the
// handover, and the outcome.
func TestClientEffectInAudit(t *testing.T) {
	for outcome, given := range map[string]effect.CallAnswer{"": {Result: json.RawMessage(`{}`)},
		"failed": {Error: "No."}} {
		ctx := context.Background()
		w := newEnv(t)
		w.loop.Tools["sign"] = sign(t)
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "sign", Args: map[string]any{}}}})
		v := start(t, w, "sign it")
		approve(t, w, v, 1)
		deliver(t, w)
		given.ActionID = v.Actions[0].ActionID
		if _, err := w.loop.Answer(ctx, "ana", v.RunID, given); err != nil {
			t.Fatal(err)
		}
		page, err := w.rec.Audit(ctx, "ana", v.RunID, "", 100)
		if err != nil || len(page.Entries) != 4 {
			t.Fatalf("%v, %+v; want len(page.Entries) 4", err, page.Entries)
		}
		for i, kind := range []string{audit.Requested, audit.Decided, audit.Intent, audit.Outcome} {
			if e := page.Entries[i]; e.Kind != kind || e.ActionID != given.ActionID ||
				i == 2 && e.Decision != string(run.ApproveOnce) || i == 3 && e.Message != outcome {
				t.Errorf("entry %d is %+v, want %s", i+1, e, kind)
			}
		}
	}
}

// TestRunEndedDuringClientEffect ends a run, by its user or by its deadline, while its client carries out an approved
// effect. The client may have done it by then, so it is not reported as not done.
func TestRunEndedDuringClientEffect(t *testing.T) {
	for why, end := range map[string]func(w *env, runID string) error{
		"cancelled": func(w *env, runID string) error {
			_, err := w.loop.Cancel(context.Background(), "ana", runID)
			return err
		},
		"deadline": func(w *env, _ string) error {
			w.tick(100 * time.Hour)
			_, err := w.loop.Sweep(context.Background())
			return err
		},
	} {
		ctx, w := context.Background(), newEnv(t)
		w.loop.Tools["sign"] = sign(t)
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "sign", Args: map[string]any{}}}})
		v := start(t, w, "sign it")
		approve(t, w, v, 1)
		if err := errors.Join(w.deliver(ctx), end(w, v.RunID), w.deliver(ctx)); err != nil {
			t.Fatal(err)
		}
		v, _, err := w.loop.Get(ctx, "ana", v.RunID)
		page, auditErr := w.rec.Audit(ctx, "ana", v.RunID, "", 100)
		if err = errors.Join(err, auditErr); err != nil {
			t.Fatal(err)
		}
		last := page.Entries[len(page.Entries)-1]
		if a := v.Actions[0]; string(v.ErrorReason) != why || a.ExecutionStatus != run.UnknownState ||
			last.Kind != audit.Outcome || last.ExecutionStatus != string(run.UnknownState) ||
			!strings.Contains(v.Message, "not known") {
			t.Errorf("%s: %+v, on record: %+v", why, v, last)
		}
	}
}
