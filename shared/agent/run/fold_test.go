package run_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

func plan(turn, index int) *run.ProposedCall {
	return &run.ProposedCall{Turn: turn, Index: index, Tool: "send", SideEffect: true, ArgsHash: "h"}
}

var (
	queued  = run.Event{Type: run.RunQueued, Queued: &run.Input{Prompt: "p"}}
	planned = run.Event{Type: run.RunStatusChange, Status: run.Planning}
	turn    = run.Event{Type: run.ModelAnswered, Turn: &run.Turn{Calls: 1}}
	action  = run.Event{Type: run.ActionProposed, ActionID: "a", Proposed: plan(1, 0)}
	waits   = run.Event{Type: run.ActionWaits, ActionID: "a",
		Wait: &run.Wait{ApprovalID: "p1", Kind: run.KindApproval}}
	yes = run.Event{Type: run.ActionDecided, ActionID: "a",
		Decided: &run.Decided{ApprovalID: "p1", Decision: run.ApproveOnce, ArgsHash: "h"}}
	no = run.Event{Type: run.ActionDecided, ActionID: "a",
		Decided: &run.Decided{ApprovalID: "p1", Decision: run.Reject}}
	started   = run.Event{Type: run.ActionStarted, ActionID: "a", Started: &run.Started{Owner: "o", Attempt: 1}}
	elsewhere = run.Event{Type: run.ActionStarted, ActionID: "a",
		Started: &run.Started{Owner: "o", Attempt: 1, ArgsHash: "h", Place: tool.Place{ID: "p"}}}
	done = run.Event{Type: run.ActionFinished, ActionID: "a",
		Finished: &run.Finished{Status: run.ActionCompleted, Execution: run.Succeeded}}
	unclear = run.Event{Type: run.ActionFinished, ActionID: "a",
		Finished: &run.Finished{Status: run.ActionFailed, Execution: run.UnknownState}}
	review = run.Event{Type: run.ActionWaits, ActionID: "a",
		Wait: &run.Wait{ApprovalID: "p2", Kind: run.KindReview}}
	confirm = run.Event{Type: run.ActionDecided, ActionID: "a",
		Decided: &run.Decided{ApprovalID: "p2", Decision: run.ConfirmDone}}
	compressed = run.Event{Type: run.ContextCompressed, Compressed: &run.Compressed{Before: 9, After: 5}}
	ended      = run.Event{Type: run.RunEnded, End: &run.End{Status: run.Completed}}
)

func TestIllegalEvents(t *testing.T) {
	begun := []run.Event{queued, planned}
	asked := append(begun[:2:2], turn, action)
	waiting := append(asked[:4:4], waits)
	for name, c := range map[string]struct {
		before []run.Event
		event  run.Event
	}{
		"nothing before the beginning":      {nil, turn},
		"a second beginning":                {begun, queued},
		"a plan without a turn":             {begun, action},
		"the same action twice":             {asked, action},
		"another turn while a call is open": {asked, turn},
		"a decision without a waiting call": {asked, yes},
		"a decision about another approval": {waiting, confirm},
		"completed without an approval":     {waiting, done},
		"a second decision":                 {append(waiting[:5:5], yes), no},
		"started after a rejection":         {append(waiting[:5:5], no), started},
		"the same attempt twice":            {append(asked[:4:4], started), started},
		"started on another account":        {append(waiting[:5:5], yes), elsewhere},
		"an end during an effect":           {append(asked[:4:4], started), ended},
		"a review of a known outcome":       {append(asked[:4:4], started, done), review},
		"completed twice":                   {append(asked[:4:4], started, done), done},
		"finished again after the review":   {append(asked[:4:4], started, unclear, review, confirm), unclear},
		"an approval that is confirmed": {waiting, run.Event{Type: run.ActionDecided, ActionID: "a",
			Decided: &run.Decided{ApprovalID: "p1", Decision: run.StartNew}}},
		"a status that does not follow": {begun, run.Event{Type: run.RunStatusChange, Status: run.Queued}},
		"an end as a status": {begun,
			run.Event{Type: run.RunStatusChange, Status: run.Completed}},
		"an unknown action": {asked,
			run.Event{Type: run.ActionStarted, ActionID: "b", Started: &run.Started{Attempt: 1}}},
		"anything after the end":           {append(begun[:2:2], ended), turn},
		"compression while a call is open": {asked, compressed},
		"compression without content":      {begun, run.Event{Type: run.ContextCompressed}},
		"an unknown event type":            {asked, run.Event{Type: "action.dreamt", ActionID: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := run.Fold(c.before)
			if err != nil {
				t.Fatalf("the events before the illegal one: %v", err)
			}
			was := snapshot(t, s)
			if err := s.Apply(c.event); err == nil {
				t.Fatal("the event was accepted")
			}
			if now := snapshot(t, s); !reflect.DeepEqual(was, now) {
				t.Errorf("the refused event changed the state:\n%s\n%s", was, now)
			}
		})
	}
}

func snapshot(t rapid.TB, s *run.State) string {
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStateMachine applies events in any order to a run. Each event either is refused and changes nothing, or leads to
// a state in which the invariants hold. BenchmarkFold measures the cost of an event in a short run and in one of 8,000
// events, because each transition folds the whole run.
func BenchmarkFold(b *testing.B) {
	all := []run.Event{queued, planned}
	for n := 1; len(all) < 8000; n++ {
		proposed := run.Event{Type: run.ActionProposed, Proposed: plan(n, 0)}
		for _, e := range []run.Event{turn, proposed, started, done} {
			e.ActionID = run.ActionID("abcdefghijklmnop", n, 0, 1)
			all = append(all, e)
		}
	}
	for _, n := range []int{500, 8000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run.Fold(all[:n]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}

func TestStateMachine(t *testing.T) {
	all := []run.Event{queued, planned, turn, action, waits, yes, no, started, done, unclear, review, confirm, ended,
		compressed,
		{Type: run.CancelRequested}, {Type: run.RunStatusChange, Status: run.Awaiting},
		{Type: run.RunStatusChange, Status: run.Executing},
		{Type: run.ActionStarted, ActionID: "a", Started: &run.Started{Owner: "p", Attempt: 2}},
		{Type: run.ActionFinished, ActionID: "a",
			Finished: &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted}}}
	rapid.Check(t, func(t *rapid.T) {
		s := &run.State{}
		var taken []run.Event
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := rapid.SampledFrom(all).Draw(t, "event")
			e.Seq, e.At = int64(len(taken)+1), time.Unix(int64(len(taken)), 0).UTC()
			before := snapshot(t, s)
			wasOver, attempt := s.End != nil, attemptOf(s)
			if err := s.Apply(e); err != nil {
				if snapshot(t, s) != before {
					t.Fatalf("the refused event %s changed the state", e.Type)
				}
				continue
			}
			taken = append(taken, e)
			a := s.Action("a")
			switch {
			case wasOver:
				t.Fatalf("%s was accepted after the end", e.Type)
			case a != nil && e.Type == run.ActionStarted && a.Decision == run.Reject:
				t.Fatal("a rejected action was started")
			case a != nil && a.Waiting() && s.End == nil && s.Derived() != run.Awaiting:
				t.Fatalf("an action waits, but the run is %s", s.Derived())
			case s.End == nil && len(s.Open()) == 0 && s.Derived() == run.Awaiting:
				t.Fatal("no action waits, but the run awaits one")
			case attemptOf(s) < attempt:
				t.Fatal("an attempt number decreased")
			}
		}
		again, err := run.Fold(taken)
		if err != nil || snapshot(t, again) != snapshot(t, s) {
			t.Fatalf("%v: the same events fold to another state", err)
		}
		views, err := run.ViewEvents(nil, nil, taken, 0)
		if err != nil || len(views) != len(taken) {
			t.Fatalf("%v: %d views of %d events", err, len(views), len(taken))
		}
	})
}

func attemptOf(s *run.State) int {
	if a := s.Action("a"); a != nil {
		return a.Started.Attempt
	}
	return 0
}
