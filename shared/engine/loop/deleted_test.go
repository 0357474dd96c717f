package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// interrupted returns a store that calls happen before its n-th commit.
func interrupted(st store.Store, n int, happen func()) *faulty.Store {
	return faulty.Wrap(st, faulty.Commits(faulty.Nth(n, faulty.Before(func(*faulty.Call) { happen() }))))
}

// TestDeletedDuringPause stops a process for longer than its lease, cancels the run and deletes its conversation, and
// lets the process continue. The process finds nothing there, and leaves nothing behind.
func TestDeletedDuringPause(t *testing.T) {
	for n := 2; n <= 4; n++ {
		ctx := context.Background()
		w := newEnv(t)
		w.loop.Model = &asked{tool: "lookup"}
		other := *w.loop
		runID := ""
		w.loop.Store = interrupted(w.store, n, func() {
			w.tick(time.Hour)
			v, err := other.Cancel(ctx, "ana", runID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Advance(ctx, runID, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil {
				t.Fatal(err)
			}
		})
		_, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana", Sink: func(n unit.Update) { runID = n.RunID }},
			loop.Prompt{Text: "look it up"})
		if !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			t.Errorf("deleted before commit %d: %v", n, err)
		}
		threads, _, err := w.rec.Threads(ctx, "ana", "", 10)
		if err != nil || len(threads) != 0 {
			t.Errorf("deleted before commit %d: %v, %d threads", n, err, len(threads))
		}
	}
}

// TestKeyOfADeletedRun uses the key of a deleted run again. The run's audit is still there, so the run is not started a
// second time.
func TestKeyOfADeletedRun(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Model = &asked{tool: "send"}
	ask, in := loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"}, loop.Prompt{Text: "tell bob"}
	v, err := w.loop.Start(ctx, ask, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Cancel(ctx, "ana", v.RunID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Start(ctx, ask, in); !fault.Is(err, fault.Policy, fault.CodeKeyReused) {
		t.Errorf("the key begins a run again: %v", err)
	}
}

// TestDeletingConversationHidden marks a conversation for deletion and stops there. From then on neither the
// conversation nor its runs exist for their user, nothing starts in it, and decisions about its approvals are refused.
func TestDeletingConversationHidden(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx := context.Background()
		w := open(t)
		w.loop.Model = &asked{tool: "send"}
		ask, in := loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"}, loop.Prompt{Text: "tell bob"}
		v, err := w.loop.Start(ctx, ask, in)
		if err != nil {
			t.Fatal(err)
		}
		ap := run.ApprovalID(v.RunID, 1)
		if _, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); !fault.Is(err, fault.Policy, fault.CodeBusy) {
			t.Fatalf("a conversation that waits for its user: %v", err)
		}
		if _, err := w.loop.Cancel(ctx, "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		stops := faulty.Wrap(w.rec.Store, faulty.Commits(faulty.Each(func(n int) bool { return n > 1 }, faulty.Down)))
		gone, err := (&records.Records{Store: stops, Now: w.clock}).DeleteThread(ctx, "ana", v.ThreadID)
		if err != nil || gone {
			t.Fatalf("%t %v", gone, err)
		}
		_, _, got := w.loop.Get(ctx, "ana", v.RunID)
		_, cancelled := w.loop.Cancel(ctx, "ana", v.RunID)
		_, resolved := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap, Decision: run.ApproveOnce})
		_, talk := w.loop.Conversation(ctx, "ana", v.RunID)
		_, begun := w.loop.Start(ctx, loop.StartRequest{UID: "ana", ThreadID: v.ThreadID}, loop.Prompt{Text: "and eve"})
		_, answered := w.loop.Answer(ctx, "ana", v.RunID, effect.CallAnswer{ActionID: v.Actions[0].ActionID})
		for name, err := range map[string]error{"get": got, "cancel": cancelled, "resolve": resolved,
			"conversation": talk, "a new run": begun, "answers": answered} {
			if !fault.Is(err, fault.Auth, fault.CodeNotFound) {
				t.Errorf("%s: %v; want error %v %v", name, err, fault.Auth, fault.CodeNotFound)
			}
		}
		if _, err := w.loop.Start(ctx, ask, in); !fault.Is(err, fault.Policy, fault.CodeKeyReused) {
			t.Errorf("its key: %v", err)
		}
		if pending, _, err := w.rec.Pending(ctx, "ana", "", 10); err != nil || len(pending) > 0 {
			t.Errorf("pending: %v %v", pending, err)
		}
		if d, err := w.rec.FinishDeletions(ctx); err != nil || d.Gone != 1 {
			t.Errorf("the sweep: %+v %v", d, err)
		}
	})
}

// TestDeletedDuringAnEffect requests the deletion of a conversation, and cancels its run, while the provider carries
// out an effect. The deletion is refused until the effect has its outcome. The audit contains the outcome before and
// after the deletion.
func TestDeletedDuringAnEffect(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Model = &asked{tool: "send"}
	v := start(t, w, "tell bob")
	meanwhile := 0
	w.loop.Store = interrupted(w.store, 3, func() { // the decision, the intent, and now the outcome: the e-mail is sent
		meanwhile++
		other := w.process()
		if _, err := other.Cancel(ctx, "ana", v.RunID); err != nil {
			t.Error(err)
		}
		if _, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); !fault.Is(err, fault.Policy, fault.CodeBusy) {
			t.Errorf("during an effect: %v", err)
		}
	})
	approve(t, w, v, 1)
	deliver(t, w)
	if gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil || !gone || meanwhile != 1 ||
		len(w.effects) != 1 {
		t.Fatalf("%t %v, %d times meanwhile, %d effects", gone, err, meanwhile, len(w.effects))
	}
	entries, head, err := w.rec.Chain(ctx, v.RunID)
	if err != nil || head == nil || len(audit.Verify(entries, *head)) > 0 {
		t.Fatalf("the chain is not whole: %v", err)
	}
	if last := entries[len(entries)-1]; last.Kind != audit.Outcome || last.ExecutionStatus != string(run.Succeeded) {
		t.Errorf("the audit ends in %+v", last)
	}
}

// TestCancelClearsLease cancels a run whose process has died. The run ends at once, and names no process that holds it.
func TestCancelClearsLease(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	dying := *w.loop
	dying.Store, dying.Model = mortal(w.store, 2, true), &asked{tool: "lookup"}
	ask, in := loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}, loop.Prompt{Text: "look it up"}
	if died, err := mortally(func() error { _, err := dying.Start(ctx, ask, in); return err }); !died {
		t.Fatal(err)
	}
	id := run.KeyedRunID("ana", "k1")
	w.tick(time.Hour)
	if v, err := w.loop.Cancel(ctx, "ana", id); err != nil || v.Status != run.Failed {
		t.Fatalf("%v, %+v; want v.Status %v", err, v, run.Failed)
	}
	var r run.Run
	if err := document.Decode(w.document(id), &r); err != nil || r.Lease.Owner != "" {
		t.Errorf("%v: held by %q", err, r.Lease.Owner)
	}
}
