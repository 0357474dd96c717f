package loop_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// TestPermissionWithdrawnBeforeRetry kills a process between its intent and its effect, and withdraws the permission
// for the effect. The process that finds that the effect did not happen does not carry it out. It also does not report
// that nothing happened, because it cannot distinguish a process that died from one that was stopped and continues.
func TestPermissionWithdrawnBeforeRetry(t *testing.T) {
	ctx := context.Background()
	for name, takeBack := range map[string]func(*testing.T, *env){
		"the entry": func(t *testing.T, w *env) {
			entries, err := w.rec.Allowlist(ctx, "ana")
			if err == nil {
				err = w.rec.Disallow(ctx, "ana", entries[0].ID, "")
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"the user": func(t *testing.T, w *env) { disable(t, w, "ana") },
		"the account": func(_ *testing.T, w *env) {
			w.account = func() (tool.Place, error) {
				return tool.Place{}, fault.New(fault.Auth, fault.CodeReauth, "Please link your account again.")
			}
		},
		"another account": func(_ *testing.T, w *env) {
			w.account = func() (tool.Place, error) {
				return tool.Place{Label: "From", Name: "ana@example.com", ID: "another link"}, nil
			}
		},
		"the provider's consent": func(_ *testing.T, w *env) { w.next = []string{"refuse"} },
		"the rules":              func(_ *testing.T, w *env) { w.loop.Rules.DenySideEffects = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.loop.Model = &asked{tool: "draft"}
			v := start(t, w, "tell bob")
			decide(t, w, v, 1, run.ApproveAlways)
			if err := w.deliver(ctx); err != nil || len(w.effects) != 1 {
				t.Fatalf("%v, done %d times", err, len(w.effects))
			}
			mortalLoop := *w.loop
			mortalLoop.Store = mortal(w.store, 3, true) // the run, the model's answer, the intent
			runID := ""
			died, err := mortally(func() error {
				_, err := mortalLoop.Start(ctx, loop.StartRequest{UID: "ana",
					Sink: func(n unit.Update) { runID = n.RunID }}, loop.Prompt{Text: "tell bob again"})
				return err
			})
			if !died || err != nil || len(w.effects) != 1 {
				t.Fatalf("died: %v, %v, done %d times", died, err, len(w.effects))
			}
			takeBack(t, w)
			w.tick(time.Hour)
			got, err := w.loop.Advance(ctx, runID, nil)
			if err != nil || len(w.effects) != 1 || got.Status != run.Awaiting {
				t.Fatalf("%v, done %d times, run %+v", err, len(w.effects), got)
			}
			if a := got.Actions[0]; a.Status != run.ActionFailed || a.ExecutionStatus != run.UnknownState {
				t.Errorf("the action is %s (%s)", a.Status, a.ExecutionStatus)
			}
		})
	}
}

// TestOutcomeOfLateRequest has a provider that does not answer and has done nothing yet at each request for the
// outcome. A request in progress may arrive later, so the run must not report the effect as not done.
func TestOutcomeOfLateRequest(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Model = &asked{tool: "draft"}
	v := start(t, w, "tell bob")
	approve(t, w, v, 1)
	w.next = []string{"hang", "hang", "hang"}
	got, err := w.loop.Advance(ctx, v.RunID, nil)
	if err != nil || len(w.effects) != 0 {
		t.Fatalf("%v, done %d times", err, len(w.effects))
	}
	if a := got.Actions[0]; a.ExecutionStatus != run.UnknownState || got.Status != run.Awaiting {
		t.Errorf("the action is %s (%s), the run %s", a.Status, a.ExecutionStatus, got.Status)
	}
}

// TestCapForLateQuestion withdraws the entry that allows a proposed call while its user has as many open approvals as
// the limit permits. The call is refused, as it would have been when it was proposed.
func TestCapForLateQuestion(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	// the handle comes before the intent, and the permission for the call may be gone by then
	w.loop.Model, w.assistant().Limits.MaxOpen = &asked{tool: "draft"}, 1
	v := start(t, w, "tell bob")
	decide(t, w, v, 1, run.ApproveAlways)
	proposed := ""
	mortalLoop := *w.loop
	mortalLoop.Store = mortal(w.store, 2, true) // the run, the model's answer
	died, err := mortally(func() error {
		_, err := mortalLoop.Start(ctx, loop.StartRequest{UID: "ana",
			Sink: func(n unit.Update) { proposed = n.RunID }}, loop.Prompt{Text: "tell bob again"})
		return err
	})
	if !died || err != nil {
		t.Fatalf("died: %v, %v", died, err)
	}
	entries, err := w.rec.Allowlist(ctx, "ana")
	if err == nil {
		err = w.rec.Disallow(ctx, "ana", entries[0].ID, "")
	}
	if err == nil {
		_, err = w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "and again"})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.tick(time.Hour)
	got, err := w.loop.Advance(ctx, proposed, nil)
	if err != nil || len(w.open("ana")) != 1 || got.Actions[0].Status != run.ActionFailed {
		t.Errorf("%v, %d approvals open, the action is %s", err, len(w.open("ana")), got.Actions[0].Status)
	}
}

// disable disables a user.
func disable(t *testing.T, w *env, uid string) {
	t.Helper()
	docs, err := w.store.Get(context.Background(), document.UserPath(uid))
	if err != nil {
		t.Fatal(err)
	}
	data, err := strictjson.Marshal(run.User{UID: uid, Disabled: true})
	if err == nil {
		_, err = w.store.Commit(context.Background(), store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, data))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestProcessStoppedBeforeClaim stops a process before it claims its run. Another process carries out the call and dies
// before it records the outcome. The first process then has a call to settle, and not one that failed because its
// handle can no longer be made.
func TestProcessStoppedBeforeClaim(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Model = &asked{tool: "draft"}
	v := start(t, w, "tell bob")
	approve(t, w, v, 1)
	first, other := *w.loop, *w.loop
	first.Store = interrupted(w.store, 1, func() {
		other.Store = mortal(w.store, 3, false) // the claim, the intent, the outcome
		died, err := mortally(func() error { _, err := other.Advance(ctx, v.RunID, nil); return err })
		if !died || err != nil || len(w.effects) != 1 {
			t.Errorf("died: %v, %v, done %d times", died, err, len(w.effects))
		}
		w.tick(time.Hour)
	})
	def := w.sendDef("draft")
	def.Prepare = func(context.Context, tool.Call, sendArgs) (string, error) {
		return "", fault.New(fault.Auth, fault.CodeReauth, "Please link your account again.")
	}
	def.Reconcile = func(context.Context, tool.Call, sendArgs) (tool.Verdict, sendResult, string, error) {
		return tool.Done, sendResult{}, "", nil
	}
	first.Tools = maps.Clone(w.loop.Tools)
	first.Tools["draft"] = tool.Define(def)
	got, err := first.Advance(ctx, v.RunID, nil)
	if err != nil || len(w.effects) != 1 {
		t.Fatalf("%v, done %d times", err, len(w.effects))
	}
	if a := got.Actions[0]; a.Status != run.ActionCompleted {
		t.Errorf("the action is %s (%s), and was done once", a.Status, a.ExecutionStatus)
	}
}
