package event_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/notify/event"
)

var at = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// story is a run that requests an approval, gets it, requests another one and gets no answer. It returns the run's
// events and state.
func story(t *testing.T) (run.Run, *run.State, []run.Event) {
	t.Helper()
	secret := json.RawMessage(`{"text":"CANARY"}`)
	events := []run.Event{
		{Type: run.RunQueued, Queued: &run.Input{Prompt: "CANARY"}},
		{Type: run.RunStatusChange, Status: run.Planning},
		{Type: run.ModelAnswered, Turn: &run.Turn{Text: "CANARY", Calls: 2}},
		{Type: run.ActionProposed, ActionID: "a1", Proposed: &run.ProposedCall{Turn: 1, Tool: "send", Args: secret,
			RequiresApproval: true}},
		{Type: run.ActionProposed, ActionID: "a2", Proposed: &run.ProposedCall{Turn: 1, Index: 1, Tool: "send",
			Args: secret, RequiresApproval: true}},
		{Type: run.ActionWaits, ActionID: "a1", Wait: &run.Wait{ApprovalID: "p1", Kind: run.KindApproval,
			ExpiresAt: at.Add(time.Hour)}},
		{Type: run.ActionWaits, ActionID: "a2", Wait: &run.Wait{ApprovalID: "p2", Kind: run.KindApproval,
			ExpiresAt: at.Add(time.Hour)}},
		{Type: run.ActionDecided, ActionID: "a1", Decided: &run.Decided{ApprovalID: "p1",
			Decision: run.ApproveOnce, Comment: "CANARY", HeldUntil: at.Add(time.Minute)}},
		{Type: run.ActionFinished, ActionID: "a2", Finished: &run.Finished{Status: run.ActionFailed,
			Execution: run.NotStarted, Error: run.ErrorInfoOf(run.ErrExpired)}},
	}
	for i := range events {
		events[i].Seq, events[i].At = int64(i+1), at.Add(time.Duration(i)*time.Second)
	}
	s, err := run.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	return run.Run{ID: "run1", UID: "ana", ThreadID: "thread1"}, s, events
}

// TestAfter checks that each event is reported once, in order and without content.
func TestAfter(t *testing.T) {
	r, s, events := story(t)
	for seq := range int64(len(events)) + 2 {
		var want []string
		for _, w := range []struct {
			seq int64
			id  string
		}{{6, "run1.6 approval.requested p1"}, {7, "run1.7 approval.requested p2"},
			{8, "run1.8 approval.decided p1"}, {9, "run1.9 approval.expired p2"}} {
			if w.seq > seq {
				want = append(want, w.id)
			}
		}
		var got []string
		for _, n := range event.After(seq, r, s, events, "https://example.com") {
			got = append(got, n.ID+" "+strings.TrimPrefix(string(n.Type), "run.countersign.")+" "+n.Data.ApprovalID)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") || event.Publishes(seq, s, events) != (len(want) > 0) {
			t.Errorf("after %d: %v, want %v", seq, got, want)
		}
	}
	if all := event.After(0, r, s, events[7:], ""); len(all) != 2 || all[0].ID != "run1.8" {
		t.Errorf("of the newest events alone: %+v", all)
	}
}

// TestEncode compares an encoded event with a fixed text, because receivers verify a signature over its bytes.
func TestEncode(t *testing.T) {
	r, s, events := story(t)
	all := event.After(0, r, s, events, "https://example.com")
	got, err := all[2].Encode("https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"specversion":"1.0","id":"run1.8","source":"https://example.com",` +
		`"type":"run.countersign.approval.decided","subject":"run1","time":"2027-03-01T09:00:07Z",` +
		`"datacontenttype":"application/json","data":{"uid":"ana","runId":"run1","threadId":"thread1",` +
		`"agent":"assistant","actionId":"a1","tool":"send","approvalId":"p1","decision":"approve_once",` +
		`"heldUntil":"2027-03-01T09:01:00Z","link":"https://example.com/#/t/thread1"}}`
	if string(got) != want {
		t.Errorf("encoded\n%s\nwant\n%s", got, want)
	}
	for _, n := range all {
		if text, err := n.Encode(""); err != nil || strings.Contains(string(text), "CANARY") {
			t.Errorf("it says too much: %s %v", text, err)
		}
	}
}

// TestEndedRunCode checks that the notification has the failure's code, but not its message.
func TestEndedRunCode(t *testing.T) {
	end := run.Event{Seq: 3, At: at, Type: run.RunEnded, End: &run.End{Status: run.Failed, Summary: "CANARY",
		Error: &run.ErrorInfo{Class: fault.Model, Code: "model_unavailable", Message: "CANARY"}}}
	all := event.After(2, run.Run{ID: "run1", Agent: "planner"}, &run.State{}, []run.Event{end}, "")
	if len(all) != 1 || all[0].Type != event.RunEnded || all[0].Data.Status != run.Failed ||
		all[0].Data.ErrorCode != "model_unavailable" || all[0].Data.Agent != "planner" || all[0].Data.Link != "" {
		t.Errorf("told %+v", all)
	}
}
