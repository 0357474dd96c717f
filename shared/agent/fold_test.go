package agent_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent"
)

func plan(turn, index int) *agent.ProposedCall {
	return &agent.ProposedCall{Turn: turn, Index: index, Tool: "send", SideEffect: true, ArgsHash: "h"}
}

var (
	queued  = agent.Event{Type: agent.RunQueued, Queued: &agent.Input{Prompt: "p"}}
	planned = agent.Event{Type: agent.RunStatusChange, Status: agent.Planning}
	turn    = agent.Event{Type: agent.ModelAnswered, Turn: &agent.Turn{Calls: 1}}
	action  = agent.Event{Type: agent.ActionProposed, ActionID: "a", Proposed: plan(1, 0)}
	waits   = agent.Event{Type: agent.ActionWaits, ActionID: "a",
		Wait: &agent.Wait{ApprovalID: "p1", Kind: agent.KindApproval}}
	yes = agent.Event{Type: agent.ActionDecided, ActionID: "a",
		Decided: &agent.Decided{ApprovalID: "p1", Decision: agent.ApproveOnce, ArgsHash: "h"}}
	no = agent.Event{Type: agent.ActionDecided, ActionID: "a",
		Decided: &agent.Decided{ApprovalID: "p1", Decision: agent.Reject}}
	started = agent.Event{Type: agent.ActionStarted, ActionID: "a", Started: &agent.Started{Owner: "o", Attempt: 1}}
	done    = agent.Event{Type: agent.ActionFinished, ActionID: "a",
		Finished: &agent.Finished{Status: agent.ActionCompleted, Execution: agent.Succeeded}}
	unclear = agent.Event{Type: agent.ActionFinished, ActionID: "a",
		Finished: &agent.Finished{Status: agent.ActionFailed, Execution: agent.UnknownState}}
	review = agent.Event{Type: agent.ActionWaits, ActionID: "a",
		Wait: &agent.Wait{ApprovalID: "p2", Kind: agent.KindReview}}
	confirm = agent.Event{Type: agent.ActionDecided, ActionID: "a",
		Decided: &agent.Decided{ApprovalID: "p2", Decision: agent.ConfirmDone}}
	ended = agent.Event{Type: agent.RunEnded, End: &agent.End{Status: agent.Completed}}
)

func TestIllegalEvents(t *testing.T) {
	begun := []agent.Event{queued, planned}
	asked := append(begun[:2:2], turn, action)
	waiting := append(asked[:4:4], waits)
	for name, c := range map[string]struct {
		before []agent.Event
		event  agent.Event
	}{
		"nothing before the beginning":        {nil, turn},
		"a second beginning":                  {begun, queued},
		"a plan without a turn":               {begun, action},
		"the same action twice":               {asked, action},
		"another turn while a call is open":   {asked, turn},
		"a decision that nobody waits for":    {asked, yes},
		"a decision about another approval":   {waiting, confirm},
		"carried out without a yes":           {waiting, done},
		"a second decision":                   {append(waiting[:5:5], yes), no},
		"carried out after a no":              {append(waiting[:5:5], no), started},
		"the same attempt twice":              {append(asked[:4:4], started), started},
		"an end while an effect is under way": {append(asked[:4:4], started), ended},
		"a review of what is known":           {append(asked[:4:4], started, done), review},
		"done and done again":                 {append(asked[:4:4], started, done), done},
		"completed by a program after all":    {append(asked[:4:4], started, unclear, review, confirm), unclear},
		"an approval that is confirmed": {waiting, agent.Event{Type: agent.ActionDecided, ActionID: "a",
			Decided: &agent.Decided{ApprovalID: "p1", Decision: agent.StartNew}}},
		"a status that does not follow": {begun, agent.Event{Type: agent.RunStatusChange, Status: agent.Queued}},
		"an end as a status": {begun,
			agent.Event{Type: agent.RunStatusChange, Status: agent.Completed}},
		"an action that is not there": {asked,
			agent.Event{Type: agent.ActionStarted, ActionID: "b", Started: &agent.Started{Attempt: 1}}},
		"anything after the end": {append(begun[:2:2], ended), turn},
		"an event of no kind":    {asked, agent.Event{Type: "action.dreamt", ActionID: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := agent.Fold(c.before)
			if err != nil {
				t.Fatalf("the events before it: %v", err)
			}
			was := snapshot(t, s)
			if err := s.Apply(c.event); err == nil {
				t.Fatal("it was taken")
			}
			if now := snapshot(t, s); !reflect.DeepEqual(was, now) {
				t.Errorf("it was refused and changed something:\n%s\n%s", was, now)
			}
		})
	}
}

func snapshot(t rapid.TB, s *agent.State) string {
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestStateMachine applies events in any order to a run: each is either refused and changes nothing, or leaves a state
// in which the invariants hold.
func TestStateMachine(t *testing.T) {
	all := []agent.Event{queued, planned, turn, action, waits, yes, no, started, done, unclear, review, confirm, ended,
		{Type: agent.CancelRequested}, {Type: agent.RunStatusChange, Status: agent.Awaiting},
		{Type: agent.RunStatusChange, Status: agent.Executing},
		{Type: agent.ActionStarted, ActionID: "a", Started: &agent.Started{Owner: "p", Attempt: 2}},
		{Type: agent.ActionFinished, ActionID: "a",
			Finished: &agent.Finished{Status: agent.ActionFailed, Execution: agent.NotStarted}}}
	rapid.Check(t, func(t *rapid.T) {
		s := &agent.State{}
		var taken []agent.Event
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := rapid.SampledFrom(all).Draw(t, "event")
			e.Seq, e.At = int64(len(taken)+1), time.Unix(int64(len(taken)), 0).UTC()
			before := snapshot(t, s)
			wasOver, attempt := s.End != nil, attemptOf(s)
			if err := s.Apply(e); err != nil {
				if snapshot(t, s) != before {
					t.Fatalf("%s was refused and changed something", e.Type)
				}
				continue
			}
			taken = append(taken, e)
			a := s.Action("a")
			switch {
			case wasOver:
				t.Fatalf("%s after the end", e.Type)
			case a != nil && e.Type == agent.ActionStarted && a.Decision == agent.Reject:
				t.Fatal("a rejected action was started")
			case a != nil && a.Waiting() && s.End == nil && s.Derived() != agent.Awaiting:
				t.Fatalf("something waits, and the run is %s", s.Derived())
			case s.End == nil && len(s.Open()) == 0 && s.Derived() == agent.Awaiting:
				t.Fatal("nothing waits, and the run awaits")
			case attemptOf(s) < attempt:
				t.Fatal("an attempt went back")
			}
		}
		again, err := agent.Fold(taken)
		if err != nil || snapshot(t, again) != snapshot(t, s) {
			t.Fatalf("%v: the same events add up to another state", err)
		}
		views, err := agent.ViewEvents(nil, taken, 0)
		if err != nil || len(views) != len(taken) {
			t.Fatalf("%v: %d views of %d events", err, len(views), len(taken))
		}
	})
}

func attemptOf(s *agent.State) int {
	if a := s.Action("a"); a != nil {
		return a.Started.Attempt
	}
	return 0
}
