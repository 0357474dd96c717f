package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestHistoryOfEdits edits a call whose outcome is lost. Whether the user then confirms it or starts it again, the
// model gets the arguments with which it was done.
func TestHistoryOfEdits(t *testing.T) {
	for name, decisions := range map[string][]run.Decision{
		"confirmed":     {run.ConfirmDone},
		"started anew":  {run.StartNew, run.ApproveOnce},
		"anew, changed": {run.StartNew, run.ApproveEdited},
	} {
		t.Run(name, func(t *testing.T) {
			w, ctx := newEnv(t), context.Background()
			w.model.Then(script.Turn{
				Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}},
				script.Turn{Text: "Well."})
			w.next = []string{"lost"}
			got, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range append([]run.Decision{run.ApproveEdited}, decisions...) {
				r := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(got.RunID, i+1), Decision: d}
				if d == run.ApproveEdited {
					r.EditedArgs = []byte(`{"to":["eve@x.org"],"text":"eleven"}`)
				}
				if _, err := w.loop.Resolve(ctx, r); err != nil {
					t.Fatal(err)
				}
				if err := w.deliver(ctx); err != nil {
					t.Fatal(err)
				}
			}
			requests := w.model.Requests()
			last := requests[len(requests)-1].Contents
			if told := string(last[len(last)-1]); !strings.Contains(told,
				`"executedArgs":{"text":"eleven","to":["eve@x.org"]}`) {
				t.Errorf("the model is told %s", told)
			}
		})
	}
}

// TestHistoryOfUnknownOutcome restarts a call that may have been done, and then rejects it. The model must not get the
// message that nothing was done, because that is not known.
func TestHistoryOfUnknownOutcome(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.assistant().OnReject = registry.RejectContinues
	w.model.Then(script.Turn{
		Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}},
		script.Turn{Text: "Well."})
	w.next = []string{"ambiguous"}
	r, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range []run.Decision{run.ApproveOnce, run.StartNew, run.Reject} {
		if _, err := w.loop.Resolve(ctx,
			approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(r.RunID, i+1), Decision: d}); err != nil {
			t.Fatal(err)
		}
		if err := w.deliver(ctx); err != nil {
			t.Fatal(err)
		}
	}
	requests := w.model.Requests()
	last := requests[len(requests)-1].Contents
	if told := string(last[len(last)-1]); !strings.Contains(told, "The user rejected this") ||
		!strings.Contains(told, "earlier attempt") {
		t.Errorf("the model is told %s", told)
	}
	v, _, err := w.loop.Get(ctx, "ana", r.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(v.Summary, "It is not known whether this was done") {
		t.Errorf("the user is told %q", v.Summary)
	}
}

// TestHistoryOfLongEdit has an edit that is longer than a response may be. The model still gets the outcome.
func TestHistoryOfLongEdit(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.model.Then(script.Turn{
		Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}},
		script.Turn{Text: "Well."})
	r, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil {
		t.Fatal(err)
	}
	long := []byte(`{"to":["eve@x.org"],"text":"` + strings.Repeat("eleven ", 12_000) + `"}`)
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(r.RunID, 1),
		Decision: run.ApproveEdited, EditedArgs: long}); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(ctx); err != nil {
		t.Fatal(err)
	}
	requests := w.model.Requests()
	last := requests[len(requests)-1].Contents
	if told := string(last[len(last)-1]); !strings.Contains(told, `"result":{"id":"`) ||
		!strings.Contains(told, `"editedBy":"user"`) || !strings.Contains(told, "bytes left out") {
		t.Errorf("the model is told %.300s", told)
	}
}

// TestEditRepeated sends a recorded edit again, as a client does after a lost answer, and after another view.
func TestEditRepeated(t *testing.T) {
	w, ctx := newEnv(t), context.Background()
	w.model.Then(script.Turn{
		Calls: []script.Call{{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}},
		script.Turn{Text: "Well."})
	got, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil {
		t.Fatal(err)
	}
	r := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(got.RunID, 1), Decision: run.ApproveEdited,
		ArgsHash:   w.approval(run.ApprovalID(got.RunID, 1)).ArgsHash,
		EditedArgs: []byte(`{"to":["eve@x.org"],"text":"eleven"}`)}
	if _, err := w.loop.Resolve(ctx, r); err != nil {
		t.Fatal(err)
	}
	edited := w.approval(r.ApprovalID).ArgsHash
	for name, want := range map[string]struct {
		hash, text string
		code       fault.Code
	}{
		"as it was":        {hash: r.ArgsHash, text: "eleven"},
		"without a hash":   {text: "eleven"},
		"after the edit":   {hash: edited, text: "eleven"},
		"of another view":  {hash: strings.Repeat("0", 64), text: "eleven", code: fault.CodeStaleView},
		"in another words": {hash: r.ArgsHash, text: "twelve", code: fault.CodeAlreadyResolved},
	} {
		again := r
		again.ArgsHash, again.EditedArgs = want.hash, []byte(`{"to":["eve@x.org"],"text":"`+want.text+`"}`)
		switch _, err := w.loop.Resolve(ctx, again); {
		case want.code == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want.code != "" && !fault.Is(err, fault.Policy, want.code):
			t.Errorf("%s: %v, want %s", name, err, want.code)
		}
	}
}
