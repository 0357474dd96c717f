package agui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/agui"
	"github.com/countersign-run/countersign/shared/api/stream"
)

// aRun looks something up, reports it, requests an e-mail that the user approves, and reports the outcome.
func aRun() []run.Event {
	turn := func(text string, calls int) run.Event {
		content := fmt.Sprintf(`{"role":"model","parts":[{"text":%q}]}`, text)
		return run.Event{Type: run.ModelAnswered,
			Turn: &run.Turn{Content: json.RawMessage(content), Text: text, Calls: calls}}
	}
	call := func(id string, turn int, effect bool) run.Event {
		return run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &run.ProposedCall{Turn: turn,
			Tool: id + "er", Args: json.RawMessage(`{"to":"bob"}`), SideEffect: effect, RequiresApproval: effect}}
	}
	done := func(id string) run.Event {
		return run.Event{Type: run.ActionFinished, ActionID: id, Finished: &run.Finished{Status: run.ActionCompleted,
			Execution: run.Succeeded, Result: json.RawMessage(`{"of":"` + id + `"}`)}}
	}
	events := []run.Event{
		{Type: run.RunQueued, Queued: &run.Input{Prompt: "go"}},
		{Type: run.RunStatusChange, Status: run.Planning},
		turn("Looking.", 1), call("look", 1, false), done("look"),
		turn("Writing.", 1), call("mail", 2, true),
		{Type: run.ActionWaits, ActionID: "mail", Wait: &run.Wait{ApprovalID: "a", Kind: run.KindApproval,
			Args: json.RawMessage(`{"to":"bob"}`)}}, // sent a second time
		{Type: run.ActionDecided, ActionID: "mail",
			Decided: &run.Decided{ApprovalID: "a", Decision: run.ApproveOnce}},
		{Type: run.ActionStarted, ActionID: "mail", Started: &run.Started{Owner: "me", Attempt: 1}},
		done("mail"), turn("Sent.", 0),
		{Type: run.RunEnded, End: &run.End{Status: run.Completed, Summary: "Sent.", Words: 5}},
	}
	for i := range events {
		events[i].Seq = int64(i + 1)
	}
	return events
}

// reader reads a stream as a client does, and fails on what the protocol forbids.
type reader struct {
	t        *testing.T
	begun    bool
	finished bool
	open     string            // ID of the open text
	calls    map[string]string // call IDs to the last part received: start, args, end
	said     []string
}

func (r *reader) read(e agui.Event) {
	if r.finished || r.begun == (e.Type == "RUN_STARTED") {
		r.t.Errorf("%s: begun %t, finished %t", e.Type, r.begun, r.finished)
	}
	r.begun = true
	switch e.Type {
	case "MESSAGES_SNAPSHOT":
		for _, m := range *e.Messages {
			if m.Content != "" {
				r.said = append(r.said, m.Role+" "+m.Content)
			}
			for _, c := range m.ToolCalls {
				r.calls[c.ID] = "TOOL_CALL_END"
				r.said = append(r.said, c.Function.Name+" "+c.Function.Arguments)
			}
		}
	case "TEXT_MESSAGE_START":
		r.becomes(e, "", e.MessageID)
	case "TEXT_MESSAGE_CONTENT":
		r.becomes(e, e.MessageID, e.MessageID)
		r.said = append(r.said, "assistant "+e.Delta.(string))
	case "TEXT_MESSAGE_END":
		r.becomes(e, e.MessageID, "")
	case "TOOL_CALL_START":
		r.follows(e, "")
		r.said = append(r.said, e.ToolCallName)
	case "TOOL_CALL_ARGS":
		r.follows(e, "TOOL_CALL_START")
		r.said[len(r.said)-1] += " " + e.Delta.(string)
	case "TOOL_CALL_END":
		r.follows(e, "TOOL_CALL_ARGS")
	case "TOOL_CALL_RESULT":
		r.follows(e, "TOOL_CALL_END")
		r.said = append(r.said, "tool "+e.Content)
	case "RUN_FINISHED":
		r.becomes(e, "", "")
		r.finished = true
	}
}

// becomes checks which text is open, and sets the text that is open from now on.
func (r *reader) becomes(e agui.Event, from, to string) {
	if r.open != from {
		r.t.Errorf("%s %s while the text %q is open", e.Type, e.MessageID, r.open)
	}
	r.open = to
}

// follows checks which part of the call was received last.
func (r *reader) follows(e agui.Event, last string) {
	if got := r.calls[e.ToolCallID]; got != last {
		r.t.Errorf("%s of %s comes after %q", e.Type, e.ToolCallID, got)
	}
	r.calls[e.ToolCallID] = e.Type
}

// TestEncoderFromEachEvent streams a run to clients that connect at each of its events, and to one from the start. All
// read the same, in a stream that the protocol allows.
func TestEncoderFromEachEvent(t *testing.T) {
	const want = `assistant Looking.; looker {"to":"bob"}; tool {"of":"look"}; assistant Writing.; ` +
		`mailer {"to":"bob"}; tool {"of":"mail"}; assistant Sent.`
	for at := range len(aRun()) + 1 {
		for _, recalls := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " ", recalls), func(t *testing.T) {
				events := aRun()
				client := &reader{t: t, calls: map[string]string{}}
				v := agui.NewEncoder(agui.Request{ThreadID: "t", RunID: "r"}, client.read)
				if recalls {
					v.Recall(nil)
				}
				told := stream.New("run", "thread", nil, v)
				for _, part := range [][]run.Event{events[:at], events[at:]} {
					if err := told.Add(part); err != nil {
						t.Fatal(err)
					}
				}
				told.Rest(nil)
				if got := strings.Join(client.said, "; "); got != want || !client.finished {
					t.Errorf("it reads\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestEncoderCallOfPage checks that the outcome names the call that waits for the page while nothing waits for the
// user, for clients whose protocol has that field.
func TestEncoderCallOfPage(t *testing.T) {
	left := run.Event{Type: run.ActionWaits, ActionID: "look", Wait: &run.Wait{Kind: run.KindCall}}
	waits, card := append(aRun()[:4:4], left), []run.ApprovalView{{ApprovalID: "a"}}
	for name, c := range map[string]struct {
		events    []run.Event
		approvals []run.ApprovalView
		protocol  string
		want      string
	}{
		"it waits":         {waits, nil, "1.0", `{"type":"success","pendingToolCallIds":["look"]}`},
		"of an old client": {waits, nil, "", `{"type":"success"}`},
		"it has ended":     {aRun(), nil, "1.0", `{"type":"success"}`},
		"beside a card":    {waits, card, "1.0", `{"type":"interrupt"`},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.events {
				c.events[i].Seq = int64(i + 1)
			}
			var last agui.Event
			told := stream.New("run", "thread", nil, agui.NewEncoder(agui.Request{Protocol: c.protocol},
				func(e agui.Event) { last = e }))
			if err := told.Add(c.events); err != nil {
				t.Fatal(err)
			}
			told.Rest(c.approvals)
			if got, err := json.Marshal(last.Outcome); err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("it ends with %s (%v), want %s", got, err, c.want)
			}
		})
	}
}
