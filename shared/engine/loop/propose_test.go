package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// byAna is a request of the user Ana.
var byAna = loop.StartRequest{UID: "ana"}

func sending(text string, own bool) loop.Call {
	return loop.Call{Prompt: "a page asks", Tool: "send",
		Args: json.RawMessage(`{"to":["bob@x.org"],"text":"` + text + `"}`), Own: own}
}

// A run of one call is validated, approved, executed and recorded like a call of the model, and calls no model.
func TestProposeCall(t *testing.T) { onEachStore(t, proposeWaits) }

func proposeWaits(t *testing.T, open func(testing.TB) *env) {
	ctx := context.Background()
	for decision, want := range map[run.Decision]struct {
		status  run.Status
		effects int
		result  string
	}{
		run.ApproveOnce: {run.Completed, 1, `"id"`},
		run.Reject:      {run.Completed, 0, ""},
	} {
		t.Run(string(decision), func(t *testing.T) {
			w := open(t)
			c, err := w.loop.StartCall(ctx, byAna, sending("hi", false))
			if err != nil || c.Terminal() || c.Approval == nil || len(w.effects) != 0 {
				t.Fatalf("%v %+v %v", err, c, w.effects)
			}
			if _, err := w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: c.Approval.ApprovalID, Decision: decision}); err != nil {
				t.Fatal(err)
			}
			deliver(t, w)
			c, err = w.loop.CallResult(ctx, "ana", c.Run.RunID)
			if err != nil || !c.Terminal() || c.Run.Status != want.status || len(w.effects) != want.effects ||
				!strings.Contains(string(c.Response.Result), want.result) {
				t.Fatalf("%v %+v %+v %v", err, c.Run, c.Response, w.effects)
			}
			if (want.effects == 0) != (c.Response.Error != "") {
				t.Errorf("the response is %+v", c.Response)
			}
			page, err := w.rec.Audit(ctx, "ana", c.Run.RunID, "", 100)
			if err != nil || len(page.Entries) == 0 || page.Entries[0].Kind != audit.Requested {
				t.Errorf("%v, audit %+v", err, page.Entries)
			}
		})
	}
}

// The user's own call needs no approval, is in the audit, and is stopped by everything that stops an effect.
func TestProposeOwn(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	req := loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"}
	for range 2 {
		c, err := w.loop.StartCall(ctx, req, sending("hi", true))
		if err != nil || c.Run.Status != run.Completed || len(w.effects) != 1 {
			t.Fatalf("%v %+v %v; want c.Run.Status %v, len(w.effects) 1", err, c, w.effects, run.Completed)
		}
		page, err := w.rec.Audit(ctx, "ana", c.Run.RunID, "", 100)
		if err != nil || len(page.Entries) != 2 || page.Entries[0].Decision != "own_call" ||
			page.Entries[1].Kind != audit.Outcome {
			t.Fatalf("%v, audit %+v", err, page.Entries)
		}
	}
	req.BodyHash = "another"
	if _, err := w.loop.StartCall(ctx, req, sending("hi", true)); !fault.Is(err, fault.Policy, fault.CodeKeyReused) {
		t.Error(err)
	}
	w.loop.Rules.AskSideEffects = true
	c, err := w.loop.StartCall(ctx, byAna, sending("hi again", true))
	if err != nil || c.Approval == nil || len(w.effects) != 1 {
		t.Errorf("%v %+v %v; want c.Approval set, len(w.effects) 1", err, c, w.effects)
	}
	w.loop.Rules.DenySideEffects = true
	c, err = w.loop.StartCall(ctx, byAna, sending("hi again", true))
	if err != nil || c.Run.Status != run.Failed || c.Run.ErrorCode != fault.Policy || len(w.effects) != 1 {
		t.Errorf("%v %+v %v; want c.Run.Status %v, c.Run.ErrorCode %v, len(w.effects) 1",
			err, c, w.effects, run.Failed, fault.Policy)
	}
}

// TestEffectsOffAfterApproval tests the setting that an operator makes before restoring a backup. An effect that was
// approved in the backup, and may have been done since, is refused and not done again.
func TestEffectsOffAfterApproval(t *testing.T) {
	w := newEnv(t)
	w.loop.Rules.AskSideEffects = true
	c, err := w.loop.StartCall(t.Context(), byAna, sending("hi", true))
	if err != nil || c.Approval == nil {
		t.Fatalf("%+v, %v; want c.Approval set", c, err)
	}
	if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: c.Approval.ApprovalID,
		Decision: run.ApproveOnce}); err != nil {
		t.Fatal(err)
	}
	w.loop.Rules.DenySideEffects = true
	deliver(t, w)
	c, err = w.loop.CallResult(t.Context(), "ana", c.Run.RunID)
	if err != nil || c.Run.Status != run.Failed || len(w.effects) != 0 {
		t.Errorf("%+v with %d effects, %v", c.Run, len(w.effects), err)
	}
}

// decideCall decides the call's approval, and returns the result.
func (w *env) decideCall(t *testing.T, c *loop.CallResult, d run.Decision) *loop.CallResult {
	t.Helper()
	if _, err := w.loop.Resolve(t.Context(),
		approval.Resolution{UID: "ana", ApprovalID: c.Approval.ApprovalID, Decision: d}); err != nil {
		t.Fatal(err)
	}
	deliver(t, w)
	c, err := w.loop.CallResult(t.Context(), "ana", c.Run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A call with an unknown outcome waits for its user, whose review ends the run.
func TestProposeUnknownOutcome(t *testing.T) {
	ctx := context.Background()
	for decision, effects := range map[run.Decision]int{run.ConfirmDone: 1, run.StartNew: 2} {
		t.Run(string(decision), func(t *testing.T) {
			w := newEnv(t)
			w.next = []string{"ambiguous"}
			c, err := w.loop.StartCall(ctx, byAna, sending("hi", true))
			if err != nil || c.Terminal() || c.Approval == nil || c.Approval.Kind != run.KindReview {
				t.Fatalf("%v %+v", err, c)
			}
			c = w.decideCall(t, c, decision)
			if decision == run.StartNew { // it needs a new approval, even as the user's own call
				if c.Terminal() || c.Approval.Kind != run.KindApproval {
					t.Fatalf("%+v", c)
				}
				c = w.decideCall(t, c, run.ApproveOnce)
			}
			if c.Run.Status != run.Completed || len(w.effects) != effects {
				t.Errorf("%+v, %v; want c.Run.Status %v, len(w.effects) %v", c.Run, w.effects, run.Completed, effects)
			}
		})
	}
}

// A review that was opened while its tool was missing, such as one of an unreachable server, can be answered like any
// other once the tool is back.
func TestReviewAfterToolReturns(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	send, d := w.loop.Tools["send"], w.sendDef("send")
	d.Execute = func(_ context.Context, c tool.Call, in sendArgs) (sendResult, error) {
		delete(w.loop.Tools, "send")
		return w.effect(c, in)
	}
	w.loop.Tools["send"], w.next = tool.Define(d), []string{"ambiguous"}
	c, err := w.loop.StartCall(ctx, byAna, sending("hi", true))
	if err != nil || c.Approval == nil || c.Approval.Kind != run.KindReview || c.Approval.Preview.Title != "send" {
		t.Fatalf("%v %+v; want c.Approval set, c.Approval.Kind %v, c.Approval.Preview.Title “send”",
			err, c, run.KindReview)
	}
	w.loop.Tools["send"] = send
	for _, d := range []run.Decision{run.StartNew, run.ApproveOnce} {
		c = w.decideCall(t, c, d)
	}
	if c.Run.Status != run.Completed || len(w.effects) != 2 {
		t.Errorf("%+v, %v; want c.Run.Status %v, len(w.effects) 2", c.Run, w.effects, run.Completed)
	}
}

func TestProposeRefuses(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	call := sending("hi", false)
	call.Tool = "nothing"
	if _, err := w.loop.StartCall(ctx, byAna, call); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Error(err)
	}
	call = sending("hi", false)
	call.Args = json.RawMessage(`{"to":[],"text":"hi"}`)
	if _, err := w.loop.StartCall(ctx, byAna, call); fault.As(err).Field != "to" {
		t.Error(err)
	}
	c, err := w.loop.StartCall(ctx, byAna, sending("hi", false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.CallResult(ctx, "eve", c.Run.RunID); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Error(err)
	}
	w.model.Then(script.Turn{Text: "Hello."})
	v := start(t, w, "hi")
	if _, err := w.loop.CallResult(ctx, "ana", v.RunID); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Error("a run that asked the model is no call:", err)
	}
}

// Whatever commit a process dies before or after, the effect of the user's own call takes place once or is left to a
// review.
func TestProposeKilledAtEveryCommit(t *testing.T) {
	ctx := context.Background()
	for n := 1; n <= 3; n++ {
		for _, after := range []bool{false, true} {
			w := newEnv(t)
			req, call := loop.StartRequest{UID: "ana", Key: "k"}, sending("hi", true)
			dying := *w.loop
			dying.Store = mortal(w.store, n, after)
			died, err := mortally(func() error { _, err := dying.StartCall(ctx, req, call); return err })
			if err != nil {
				t.Fatal(err)
			}
			w.tick(time.Hour)
			c, err := w.loop.StartCall(ctx, req, call) // like a caller that got no answer
			if err == nil && !c.Terminal() && c.Approval == nil {
				_, err = w.loop.Advance(ctx, c.Run.RunID, nil)
			}
			if err == nil {
				c, err = w.loop.CallResult(ctx, "ana", c.Run.RunID)
			}
			if err != nil || len(w.effects) > 1 || died && !c.Terminal() && c.Approval == nil || c.Terminal() &&
				len(w.effects) != 1 {
				t.Errorf("commit %d, after %v: %v, %+v, effects %v", n, after, err, c, w.effects)
			}
		}
	}
}

// remote is a tool that a client answers.
func remote(t testing.TB) *tool.Tool {
	t.Helper()
	r, err := tool.Remote("click", "Clicks.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sign is a side effect that a client carries out, once its user has approved it.
func sign(t testing.TB) *tool.Tool {
	t.Helper()
	s, err := tool.Declare(tool.Declaration{Name: "sign", Description: "Signs on the client's machine.",
		SideEffect: true,
		Wait:       time.Hour, Input: &jsonschema.Schema{Type: "object"}, Summary: "Signed it.",
		Preview: func(json.RawMessage) (tool.Preview, error) { return tool.Preview{Title: "Sign it"}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A call of a tool without a function waits, on any store and across processes, until its client reports the result.
func TestClientCallWaits(t *testing.T) { onEachStore(t, callWaits) }

func callWaits(t *testing.T, open func(testing.TB) *env) {
	ctx := context.Background()
	w := open(t)
	w.loop.Tools["click"] = remote(t)
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "click", Args: map[string]any{}},
		{Name: "lookup", Args: map[string]any{"word": "a"}}}}, script.Turn{Text: "Clicked."})
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "click"})
	if err != nil || v.Status != run.Awaiting || v.Actions[0].Kind != run.KindCall ||
		v.Actions[1].Status != run.ActionCompleted {
		t.Fatalf("%v %+v; want v.Status %v, v.Actions[0].Kind %v, v.Actions[1].Status %v",
			err, v, run.Awaiting, run.KindCall, run.ActionCompleted)
	}
	if aps := w.open("ana"); len(aps) != 0 {
		t.Errorf("its user is asked: %+v", aps)
	}
	answer := effect.CallAnswer{ActionID: v.Actions[0].ActionID, Result: json.RawMessage(`{"ok":true}`)}
	if _, err := w.loop.Answer(ctx, "eve", v.RunID, answer); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Error("somebody else answers:", err)
	}
	other := effect.CallAnswer{ActionID: v.Actions[1].ActionID, Result: answer.Result}
	if _, err := w.loop.Answer(ctx, "ana", v.RunID, answer, other); !fault.Is(err, fault.Policy,
		fault.CodeNotWaiting) {
		t.Error("what ran here is answered:", err)
	}
	if _, err := w.loop.Answer(ctx, "ana", v.RunID, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Answer(ctx, "ana", v.RunID, answer); err != nil {
		t.Error("the same answer again:", err)
	}
	another := effect.CallAnswer{ActionID: answer.ActionID, Error: "It broke."}
	if _, err := w.loop.Answer(ctx, "ana", v.RunID, another); !fault.Is(err, fault.Policy,
		fault.CodeAlreadyResolved) {
		t.Error("it is answered twice:", err)
	}
	if v, err = w.process().Advance(ctx, v.RunID, nil); err != nil || v.Status != run.Completed ||
		v.Summary != "Clicked." {
		t.Fatalf("%v %+v; want v.Status %v, v.Summary “Clicked.”", err, v, run.Completed)
	}
}

// The wait for a client is limited, and a cancel does not wait for one.
func TestClientCallUnanswered(t *testing.T) {
	ctx := context.Background()
	for name, end := range map[string]func(*env, *run.View) error{
		"deadline": func(w *env, v *run.View) error {
			w.tick(100 * time.Hour)
			_, err := w.loop.Sweep(ctx)
			return errors.Join(err, w.deliver(ctx))
		},
		"cancelled": func(w *env, v *run.View) error {
			_, err := w.loop.Cancel(ctx, "ana", v.RunID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.loop.Tools["click"] = remote(t)
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "click", Args: map[string]any{}}}})
			v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "click"})
			if err == nil {
				err = end(w, v)
			}
			if err == nil {
				v, _, err = w.loop.Get(ctx, "ana", v.RunID)
			}
			if err != nil || v.Status != run.Failed || v.Actions[0].Status != run.ActionFailed {
				t.Fatalf("%v %+v; want v.Status %v, v.Actions[0].Status %v", err, v, run.Failed, run.ActionFailed)
			}
		})
	}
}

// TestClientCallExpired reads a call after its approval has expired, before any sweep.
func TestClientCallExpired(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	req := loop.StartRequest{UID: "ana", Key: "k"}
	call := loop.Call{Prompt: "Called send.", Tool: "send", Args: args([]string{"bob@x.org"}, "ten")}
	called, err := w.loop.StartCall(ctx, req, call)
	if err != nil || called.Terminal() || called.Approval == nil {
		t.Fatalf("%v %+v", err, called)
	}
	w.tick(25 * time.Hour)
	got, err := w.loop.CallResult(ctx, "ana", called.Run.RunID)
	again, err2 := w.loop.StartCall(ctx, req, call)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, c := range []*loop.CallResult{got, again} {
		if !c.Terminal() || c.Approval != nil || c.Run.ErrorReason != fault.CodeExpired || c.Response.Error == "" {
			t.Errorf("%+v, response %+v", c.Run, c.Response)
		}
	}
}

// Runs that name one thread share it. The first of them creates it, and a deleted thread is created again.
func TestProposeInOneThread(t *testing.T) { onEachStore(t, proposeShares) }

func proposeShares(t *testing.T, open func(testing.TB) *env) {
	ctx := context.Background()
	w := open(t)
	id := run.KeyedThreadID("ana", "a page")
	propose := func(text string) {
		t.Helper()
		req := loop.StartRequest{UID: "ana", ThreadID: id, Title: "A page"}
		c, err := w.loop.StartCall(ctx, req, sending(text, true))
		if err != nil || c.Run.ThreadID != id || c.Run.Status != run.Completed {
			t.Fatalf("%v %+v; want c.Run.ThreadID %v, c.Run.Status %v", err, c, id, run.Completed)
		}
	}
	shared := func(messages int64) {
		t.Helper()
		threads, _, err := w.rec.Threads(ctx, "ana", "", 10)
		if err != nil || len(threads) != 1 || threads[0].ThreadID != id || threads[0].Title != "A page" ||
			threads[0].Messages != messages {
			t.Fatalf("%v %+v; want len(threads) 1, threads[0].ThreadID %v, threads[0].Title “A page”, "+
				"threads[0].Messages %v",
				err, threads, id, messages)
		}
	}
	propose("one")
	shared(2)
	propose("two")
	shared(4)
	if _, err := w.rec.DeleteThread(ctx, "ana", id); err != nil {
		t.Fatal(err)
	}
	propose("three")
	shared(2)
	req := loop.StartRequest{UID: "eve", ThreadID: id, Title: "A page"}
	if _, err := w.loop.StartCall(ctx, req, sending("four", true)); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another user's thread: %v", err)
	}
}
