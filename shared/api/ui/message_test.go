package ui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/api/ui"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// short summarises a chunk: its type and what it is about.
func short(c ui.Chunk) string {
	words := []string{c.Type, c.ToolCallID, c.ApprovalID, string(c.Input), string(c.Output), c.Delta, c.ErrorText,
		c.Finish}
	if c.Data != nil {
		words = append(words, string(c.Data.Status), c.Data.Message)
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// The events of runs.
var (
	queued   = run.Event{Type: run.RunQueued, Queued: &run.Input{Prompt: "go"}}
	planning = run.Event{Type: run.RunStatusChange, Status: run.Planning}
)

func answered(content string, calls int) run.Event {
	var c struct{ Parts []struct{ Text string } }
	_ = json.Unmarshal([]byte(content), &c) // the last part is the text
	text := ""
	if n := len(c.Parts); n > 0 && calls == 0 {
		text = c.Parts[n-1].Text
	}
	return run.Event{Type: run.ModelAnswered,
		Turn: &run.Turn{Content: json.RawMessage(content), Text: text, Calls: calls}}
}

func says(text string) run.Event {
	return answered(fmt.Sprintf(`{"role":"model","parts":[{"text":%q}]}`, text), 0)
}

// called is a model turn with this many calls.
func called(calls int) run.Event {
	return answered(`{"role":"model","parts":[{"functionCall":{"id":"1","name":"mail","args":{}}}]}`, calls)
}

func proposed(id string, turn, index int) run.Event {
	return run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &run.ProposedCall{Turn: turn, Index: index,
		Tool: "mail", Args: json.RawMessage(`{"to":"bob"}`), ArgsHash: "h", RequiresApproval: true, SideEffect: true}}
}

func waits(id, approvalID string) run.Event {
	return run.Event{Type: run.ActionWaits, ActionID: id,
		Wait: &run.Wait{ApprovalID: approvalID, Kind: run.KindApproval}}
}

func decided(id, approvalID string, d run.Decision) run.Event {
	return run.Event{Type: run.ActionDecided, ActionID: id, Decided: &run.Decided{ApprovalID: approvalID, Decision: d}}
}

func started(id string) run.Event {
	return run.Event{Type: run.ActionStarted, ActionID: id, Started: &run.Started{Owner: "me", Attempt: 1}}
}

func finished(id string, status run.ActionStatus, as run.Execution, message string) run.Event {
	f := &run.Finished{Status: status, Execution: as}
	if message == "" {
		f.Result = json.RawMessage(`{"id":"m1"}`)
	} else {
		f.Error = &run.ErrorInfo{Class: fault.Tool, Message: message}
	}
	return run.Event{Type: run.ActionFinished, ActionID: id, Finished: f}
}

func ended(status run.Status, summary string, words int) run.Event {
	end := &run.End{Status: status, Summary: summary, Words: words}
	if status == run.Failed {
		end.Error = &run.ErrorInfo{Class: fault.Policy, Message: summary}
	}
	return run.Event{Type: run.RunEnded, End: end}
}

// numbered numbers the events.
func numbered(events ...run.Event) []run.Event {
	for i := range events {
		events[i].Seq = int64(i + 1)
	}
	return events
}

// asks is a run up to the approval of a call.
func asks() []run.Event {
	return []run.Event{queued, planning, called(1), proposed("c1", 1, 0), waits("c1", "a1")}
}

const (
	begins    = "start / data-run planning / "
	asksFirst = "start-step / tool-input-available c1 {\"to\":\"bob\"} / "
)

func TestMessage(t *testing.T) {
	for name, c := range map[string]struct {
		events   []run.Event
		answered []string
		want     string
	}{
		"words": {events: []run.Event{queued, planning, says("Hi."), ended(run.Completed, "Hi.", 3)},
			want: "start / data-run completed / start-step / text-start / text-delta Hi. / text-end / finish-step / " +
				"finish stop"},
		"thoughts": {
			events: []run.Event{queued, planning, answered(
				`{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"Hi."}]}`, 0),
				ended(run.Completed, "Hi.", 3)},
			want: "start / data-run completed / start-step / reasoning-start / reasoning-delta Hm. / reasoning-end / " +
				"text-start / text-delta Hi. / text-end / finish-step / finish stop"},
		"an answer that was refused": {
			events: []run.Event{queued, planning, {Type: run.ModelAnswered, Turn: &run.Turn{Text: "Unheard.",
				Correction: "Say it otherwise."}}, says("Hi."), ended(run.Completed, "Hi.", 3)},
			want: "start / data-run completed / start-step / text-start / text-delta Hi. / text-end / finish-step / " +
				"finish stop"},
		"words that the server adds to": {
			events: []run.Event{queued, planning, says("Hi."), ended(run.Completed, "Hi.\n\nOn record: nothing.", 3)},
			want: "start / data-run completed / start-step / text-start / text-delta Hi. / text-end / finish-step / " +
				"start-step / text-start / text-delta On record: nothing. / text-end / finish-step / finish stop"},
		"a card": {events: asks(),
			want: begins + asksFirst + "tool-approval-request c1 a1~h / finish-step / finish tool-calls"},
		"a card that was decided": {events: append(asks(), decided("c1", "a1", run.ApproveOnce), started("c1")),
			want: begins + asksFirst + "finish-step / finish tool-calls"},
		"a card that was edited": {
			events: append(asks(), run.Event{Type: run.ActionDecided, ActionID: "c1",
				Decided: &run.Decided{ApprovalID: "a1", Decision: run.ApproveEdited,
					EditedArgs: json.RawMessage(`{"to":"eve"}`)}}),
			want: begins + strings.Replace(asksFirst, "bob", "eve", 1) + "finish-step / finish tool-calls"},
		"a card that was made anew": {events: append(asks(), waits("c1", "a2")),
			want: begins + asksFirst + "tool-approval-request c1 a2~h / finish-step / finish tool-calls"},
		"what follows a yes": {answered: []string{"a1"},
			events: append(asks(), decided("c1", "a1", run.ApproveOnce), started("c1"),
				finished("c1", run.ActionCompleted, run.Succeeded, ""), says("Sent."),
				ended(run.Completed, "Sent.", 5)),
			want: "start / data-run completed / tool-output-available c1 {\"id\":\"m1\"} / start-step / text-start / " +
				"text-delta Sent. / text-end / finish-step / finish stop"},
		"what follows a no": {answered: []string{"a1"},
			events: append(asks(), decided("c1", "a1", run.Reject), ended(run.Completed, "Nothing was sent.", 0)),
			want: "start / data-run completed / tool-output-denied c1 / start-step / text-start / " +
				"text-delta Nothing was sent. / text-end / finish-step / finish stop"},
		"what follows the first of two answers": {answered: []string{"a1"},
			events: []run.Event{queued, planning, called(2), proposed("c1", 1, 0), proposed("c2", 1, 1),
				waits("c1", "a1"), waits("c2", "a2"), decided("c1", "a1", run.Reject)},
			want: begins + "tool-approval-request c2 a2~h / tool-output-denied c1 / finish tool-calls"},
		"an unknown outcome": {answered: []string{"a1"},
			events: append(asks(), decided("c1", "a1", run.ApproveOnce), started("c1"),
				finished("c1", run.ActionFailed, run.UnknownState, "Nobody knows."),
				run.Event{Type: run.ActionWaits, ActionID: "c1",
					Wait: &run.Wait{ApprovalID: "a2", Kind: run.KindReview}}),
			want: begins + "tool-output-error c1 Nobody knows. / finish tool-calls"},
		"a failure": {events: []run.Event{queued, planning, ended(run.Failed, "It broke.", 0)},
			want: "start / data-run failed It broke. / error It broke. / finish error"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := stream.New("run", "thread", c.answered, ui.Message(func(c ui.Chunk) { got = append(got, short(c)) }))
			if err := m.Add(numbered(c.events...)); err != nil {
				t.Fatal(err)
			}
			m.Rest(nil)
			if text := strings.Join(got, " / "); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
		})
	}
}

// TestStreamedText checks that the model's text is sent once, in pieces as it arrives or as it is stored.
func TestStreamedText(t *testing.T) {
	const sure = "text-delta He / text-delta llo. / text-end"
	for name, c := range map[string]struct{ stored, want string }{
		"the same": {"Hello.", sure},
		"more": {"Hello. And more.",
			"text-delta He / text-delta llo. / text-delta  And more. / text-end"},
		"of another process":      {"Good day.", sure + " / text-start / text-delta Good day. / text-end"},
		"of which nothing stands": {"", sure},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			m := stream.New("run", "thread", nil, ui.Message(func(c ui.Chunk) {
				if strings.HasPrefix(c.Type, "text-") {
					got = append(got, strings.TrimSuffix(c.Type+" "+c.Delta, " "))
				}
			}))
			events := numbered(queued, planning, says(c.stored), ended(run.Completed, c.stored, len(c.stored)))
			if err := m.Add(events[:2]); err != nil {
				t.Fatal(err)
			}
			m.Delta("He")
			m.Delta("llo.")
			for range 2 { // a repeated event is sent once
				if err := m.Add(events); err != nil {
					t.Fatal(err)
				}
			}
			m.Rest(nil)
			if text := strings.Join(got, " / "); text != "text-start / "+c.want {
				t.Errorf("got\n%s\nwant\ntext-start / %s", text, c.want)
			}
		})
	}
}
