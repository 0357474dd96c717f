package agui

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/tell"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Voice tells a run in the events of AG-UI.
type Voice struct {
	send    func(Event)
	in      Request
	refused []Refusal

	past    *past      // nil: what is told happens now
	status  run.Status // that the client was told last
	runID   string     // our own, so that no id is that of another run's message
	parent  string     // id of the message that has the calls of the step
	open    string     // id of the text that is open
	begun   map[string]bool
	results map[string]int
}

var _ tell.Voice = (*Voice)(nil)

// NewVoice returns a voice that answers the request by sending events.
func NewVoice(in Request, send func(Event)) *Voice {
	return &Voice{send: send, in: in, begun: map[string]bool{}, results: map[string]int{}}
}

// Refuse says at the beginning that an answer did not count.
func (v *Voice) Refuse(interruptID string, why *fault.Error) {
	v.refused = append(v.refused, Refusal{interruptID, string(why.Code), why.Message})
}

// Recall has the client get all messages at once, those before the run and those of it that are stored, before it is
// told what happens then.
func (v *Voice) Recall(before []Message) { v.past = &past{messages: before} }

// Idle tells a client of its conversation in which no run is open.
func (v *Voice) Idle(messages []Message) {
	v.start()
	v.send(Event{Type: "MESSAGES_SNAPSHOT", Messages: &messages})
	v.finish(Outcome{Type: "success"})
}

// Begin begins the stream.
func (v *Voice) Begin(r tell.Run) {
	v.runID = r.ID
	v.start()
	state := map[string]json.RawMessage{}
	if json.Unmarshal(v.in.State, &state) != nil || state == nil { // what is no object has no place for ours
		state = map[string]json.RawMessage{}
	}
	v.status = r.State.Status
	state[Key], _ = json.Marshal(stateOf(r)) // of strings
	v.send(Event{Type: "STATE_SNAPSHOT", Snapshot: state})
}

func (v *Voice) start() {
	v.send(Event{Type: "RUN_STARTED", ThreadID: v.in.ThreadID, RunID: v.in.RunID, ProtocolVersion: Version})
	for _, r := range v.refused {
		v.send(Event{Type: "CUSTOM", Name: Refused, Value: r})
	}
}

// CaughtUp sends the messages that were recalled. From then on each is told as it comes.
func (v *Voice) CaughtUp() {
	if v.past == nil {
		return
	}
	v.send(Event{Type: "MESSAGES_SNAPSHOT", Messages: &v.past.messages})
	v.past = nil
	if v.open != "" { // more of it may come
		v.send(Event{Type: "TEXT_MESSAGE_START", MessageID: v.open, Role: "assistant"})
	}
}

// Changed says in the client's state how the run stands.
func (v *Voice) Changed(r tell.Run) {
	if r.State.Status == v.status {
		return
	}
	v.status = r.State.Status
	v.send(Event{Type: "STATE_DELTA", Delta: []any{
		map[string]any{"op": "replace", "path": "/" + Key, "value": stateOf(r)}}})
}

func stateOf(r tell.Run) RunState {
	return RunState{r.ID, r.ThreadID, r.Agent(), r.State.Status, run.RecordOf(r.State)}
}

// StartStep has no event: a step's name would be all that it says.
func (v *Voice) StartStep() {}

// EndStep ends the message that has the calls of the step.
func (v *Voice) EndStep() { v.parent = "" }

// StartText begins a message.
func (v *Voice) StartText(id string) {
	v.open = v.id(id)
	v.parent = v.open
	if v.past != nil {
		v.past.add(Message{ID: v.open, Role: "assistant"})
		return
	}
	v.send(Event{Type: "TEXT_MESSAGE_START", MessageID: v.open, Role: "assistant"})
}

// Text adds to it.
func (v *Voice) Text(_, delta string) {
	if v.past != nil {
		v.past.message(v.open).Content += delta
		return
	}
	v.send(Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: v.open, Delta: delta})
}

// EndText ends it.
func (v *Voice) EndText(string) {
	if v.past == nil {
		v.send(Event{Type: "TEXT_MESSAGE_END", MessageID: v.open})
	}
	v.open = ""
}

// id returns the id of a message of the run. Recalled, it is another one than when it was told as it happened: a client
// leaves those that it has in their places, and puts the others behind them.
func (v *Voice) id(of string) string {
	if v.past != nil {
		return v.runID + "-" + of + "-again"
	}
	return v.runID + "-" + of
}

// Thought is what the model shows of its thoughts.
func (v *Voice) Thought(id, text string) {
	id = v.id(id)
	if v.past != nil {
		v.past.add(Message{ID: id, Role: "reasoning", Content: text})
		return
	}
	v.send(Event{Type: "REASONING_START", MessageID: id})
	v.send(Event{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"})
	v.send(Event{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: text})
	v.send(Event{Type: "REASONING_MESSAGE_END", MessageID: id})
	v.send(Event{Type: "REASONING_END", MessageID: id})
}

// Call is a call. Arguments that have changed since it was told are in the card alone: no event takes them back.
func (v *Voice) Call(a *run.Action, args json.RawMessage) {
	if v.begun[a.ID] {
		return
	}
	v.begun[a.ID] = true
	if v.parent == "" {
		v.parent = v.id(a.ID)
	}
	if v.past != nil {
		v.past.call(v.parent, a, args)
		return
	}
	v.send(Event{Type: "TOOL_CALL_START", ToolCallID: a.ID, ToolCallName: a.Tool, ParentMessageID: v.parent})
	v.send(Event{Type: "TOOL_CALL_ARGS", ToolCallID: a.ID, Delta: string(args)})
	v.send(Event{Type: "TOOL_CALL_END", ToolCallID: a.ID})
}

// Ask says that a call waits for its user; the interrupt follows when the run rests.
func (v *Voice) Ask(a *run.Action) {
	if v.past == nil {
		v.send(Event{Type: "CUSTOM", Name: Asked, Value: Ask{a.ApprovalID, a.ArgsHash, a.ID, a.Reason}})
	}
}

// Done says what came of a call. What the page has returned it gets back as it was.
func (v *Voice) Done(a *run.Action, result json.RawMessage) {
	var text string
	if a.Decision == run.ConfirmDone && a.Result == nil {
		text = "Its user says that it was done."
	} else if a.Kind != run.KindCall || json.Unmarshal(result, &text) != nil {
		text = string(result)
	}
	v.result(a, text)
}

// Denied says that a call was not made because its user said no.
func (v *Voice) Denied(a *run.Action) { v.result(a, "Its user said no, so it was not done.") }

// Failed says why a call was not made, or failed.
func (v *Voice) Failed(a *run.Action, why string) { v.result(a, why) }

// result says what became of a call: again where its outcome was not known before.
func (v *Voice) result(a *run.Action, content string) {
	v.results[a.ID]++
	id := v.id(fmt.Sprintf("%s-result-%d", a.ID, v.results[a.ID]))
	if v.past != nil {
		v.past.add(Message{ID: id, Role: "tool", ToolCallID: a.ID, Content: content})
		return
	}
	v.send(Event{Type: "TOOL_CALL_RESULT", MessageID: id, ToolCallID: a.ID, Role: "tool", Content: content})
}

// Rest ends the stream: the run has ended, or asks its user, or waits for the page alone.
func (v *Voice) Rest(r tell.Run) {
	v.CaughtUp()
	switch {
	case r.Error() != "" && len(v.in.Resume) > 0:
		v.failAnswered(r.Error())
	case r.Error() != "":
		v.fail(r.Error(), string(r.State.End.Error.Code))
	case r.State.End == nil && len(r.Approvals) > 0:
		asks := Outcome{Type: "interrupt"}
		for _, a := range r.Approvals {
			asks.Interrupts = append(asks.Interrupts, interrupt(a))
		}
		v.finish(asks)
	default:
		v.finish(Outcome{Type: "success", PendingToolCallIDs: v.leftToPage(r.State)})
	}
}

// failAnswered tells a client that has answered why its run has failed. It lets go of its interrupts when a run
// finishes, and not when one fails: after that it would refuse what its user says.
func (v *Voice) failAnswered(why string) {
	v.StartText("error")
	v.Text("error", why)
	v.EndText("error")
	v.finish(Outcome{Type: "success"})
}

// leftToPage returns the calls that wait for the client. One older than 1.0 finds them by what has no result, and
// refuses an outcome that names them.
func (v *Voice) leftToPage(s *run.State) (ids []string) {
	for _, a := range s.Actions {
		if v.in.Protocol != "" && s.End == nil && a.WaitsForClient() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func (v *Voice) finish(as Outcome) {
	v.send(Event{Type: "RUN_FINISHED", ThreadID: v.in.ThreadID, RunID: v.in.RunID, Outcome: &as})
}

// Fail says that the stream ends in an error.
func (v *Voice) Fail(why string) { v.fail(why, "") }

func (v *Voice) fail(why, code string) { v.send(Event{Type: "RUN_ERROR", Message: why, Code: code}) }
