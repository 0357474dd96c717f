package agui

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// An Encoder encodes a run in the events of AG-UI.
type Encoder struct {
	send    func(Event)
	in      Request
	refused []Refusal

	past    *past      // collects the stored part; nil once events happen live
	status  run.Status // last status sent to the client
	runID   string     // prefix of message IDs, so that runs do not share IDs
	parent  string     // ID of the message that has the step's calls
	open    string     // ID of the open text
	begun   map[string]bool
	results map[string]int
}

var _ stream.Encoder = (*Encoder)(nil)

// NewEncoder returns an Encoder for the request. It passes events to send.
func NewEncoder(in Request, send func(Event)) *Encoder {
	return &Encoder{send: send, in: in, begun: map[string]bool{}, results: map[string]int{}}
}

// Refuse reports an answer that did not count. It is sent at the beginning of the stream.
func (v *Encoder) Refuse(interruptID string, why *fault.Error) {
	v.refused = append(v.refused, Refusal{interruptID, string(why.Code), why.Message})
}

// Recall makes the client first receive all messages at once: those in before, and the stored ones of the run. Live
// events follow.
func (v *Encoder) Recall(before []Message) { v.past = &past{messages: before} }

// Idle sends the conversation to a client when no run is open.
func (v *Encoder) Idle(messages []Message) {
	v.start()
	v.send(Event{Type: "MESSAGES_SNAPSHOT", Messages: &messages})
	v.finish(Outcome{Type: "success"})
}

// Begin starts the stream.
func (v *Encoder) Begin(r stream.Run) {
	v.runID = r.ID
	v.start()
	state := map[string]json.RawMessage{}
	if json.Unmarshal(v.in.State, &state) != nil || state == nil { // replace a state that is not an object
		state = map[string]json.RawMessage{}
	}
	v.status = r.State.Status
	state[Key], _ = json.Marshal(stateOf(r)) // cannot fail: it has only strings
	v.send(Event{Type: "STATE_SNAPSHOT", Snapshot: state})
}

func (v *Encoder) start() {
	v.send(Event{Type: "RUN_STARTED", ThreadID: v.in.ThreadID, RunID: v.in.RunID, ProtocolVersion: Version})
	for _, r := range v.refused {
		v.send(Event{Type: "CUSTOM", Name: Refused, Value: r})
	}
}

// CaughtUp sends the collected messages. Later events are sent as they happen.
func (v *Encoder) CaughtUp() {
	if v.past == nil {
		return
	}
	v.send(Event{Type: "MESSAGES_SNAPSHOT", Messages: &v.past.messages})
	v.past = nil
	if v.open != "" { // more text may follow
		v.send(Event{Type: "TEXT_MESSAGE_START", MessageID: v.open, Role: "assistant"})
	}
}

// Changed updates the run's state in the client's state.
func (v *Encoder) Changed(r stream.Run) {
	if r.State.Status == v.status {
		return
	}
	v.status = r.State.Status
	v.send(Event{Type: "STATE_DELTA", Delta: []any{
		map[string]any{"op": "replace", "path": "/" + Key, "value": stateOf(r)}}})
}

func stateOf(r stream.Run) RunState {
	return RunState{r.ID, r.ThreadID, r.Agent(), r.State.Status, run.RecordOf(r.State)}
}

// StartStep sends nothing: a step event would carry only a name.
func (v *Encoder) StartStep() {}

// EndStep closes the message that has the step's calls.
func (v *Encoder) EndStep() { v.parent = "" }

// StartText starts a message.
func (v *Encoder) StartText(id string) {
	v.open = v.id(id)
	v.parent = v.open
	if v.past != nil {
		v.past.add(Message{ID: v.open, Role: "assistant"})
		return
	}
	v.send(Event{Type: "TEXT_MESSAGE_START", MessageID: v.open, Role: "assistant"})
}

// Text adds to the message.
func (v *Encoder) Text(_, delta string) {
	if v.past != nil {
		v.past.message(v.open).Content += delta
		return
	}
	v.send(Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: v.open, Delta: delta})
}

// EndText ends the message.
func (v *Encoder) EndText(string) {
	if v.past == nil {
		v.send(Event{Type: "TEXT_MESSAGE_END", MessageID: v.open})
	}
	v.open = ""
}

// File sends a file of the answer. The protocol has no event for it.
func (v *Encoder) File(f stream.File) {
	if v.past == nil {
		v.send(Event{Type: "CUSTOM", Name: Filed, Value: MadeFile{f.Facts, v.runID, f.DataURL()}})
	}
}

// id returns the ID of a message of the run. A recalled message gets another ID than a live one, because a client
// leaves known messages where they are and appends the others after them.
func (v *Encoder) id(of string) string {
	if v.past != nil {
		return v.runID + "-" + of + "-again"
	}
	return v.runID + "-" + of
}

// StartThought starts the thoughts that the model shows.
func (v *Encoder) StartThought(id string) {
	if v.past == nil {
		v.send(Event{Type: "REASONING_START", MessageID: v.id(id)})
		v.send(Event{Type: "REASONING_MESSAGE_START", MessageID: v.id(id), Role: "reasoning"})
	}
}

// Thought adds to the thoughts. Those of the past come in one piece.
func (v *Encoder) Thought(id, delta string) {
	if v.past != nil {
		v.past.add(Message{ID: v.id(id), Role: "reasoning", Content: delta})
		return
	}
	v.send(Event{Type: "REASONING_MESSAGE_CONTENT", MessageID: v.id(id), Delta: delta})
}

// EndThought ends the thoughts.
func (v *Encoder) EndThought(id string) {
	if v.past == nil {
		v.send(Event{Type: "REASONING_MESSAGE_END", MessageID: v.id(id)})
		v.send(Event{Type: "REASONING_END", MessageID: v.id(id)})
	}
}

// Call sends a call once. If its arguments change later, only the card shows that: no event can revoke the arguments
// sent.
func (v *Encoder) Call(a *run.Action, args json.RawMessage) {
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

// Ask reports that a call waits for the user. The interrupt follows when the run rests.
func (v *Encoder) Ask(a *run.Action) {
	if v.past == nil {
		v.send(Event{Type: "CUSTOM", Name: Asked, Value: Ask{a.ApprovalID, a.ArgsHash, a.ID, a.Reason}})
	}
}

// Done sends the result of a call. The page gets the result of its own tool back unchanged.
func (v *Encoder) Done(a *run.Action, result json.RawMessage) {
	var text string
	if a.Decision == run.ConfirmDone && a.Result == nil {
		text = "Its user says that it was done."
	} else if a.Kind != run.KindCall || json.Unmarshal(result, &text) != nil {
		text = string(result)
	}
	v.result(a, text)
}

// Denied reports that the user rejected a call.
func (v *Encoder) Denied(a *run.Action) { v.result(a, "Its user said no, so it was not done.") }

// Failed reports why a call did not run, or failed.
func (v *Encoder) Failed(a *run.Action, why string) { v.result(a, why) }

// result sends the outcome of a call. A call whose outcome was unknown can get a second one.
func (v *Encoder) result(a *run.Action, content string) {
	v.results[a.ID]++
	id := v.id(fmt.Sprintf("%s-result-%d", a.ID, v.results[a.ID]))
	if v.past != nil {
		v.past.add(Message{ID: id, Role: "tool", ToolCallID: a.ID, Content: content})
		return
	}
	v.send(Event{Type: "TOOL_CALL_RESULT", MessageID: id, ToolCallID: a.ID, Role: "tool", Content: content})
}

// Rest ends the stream: the run has ended, waits for the user, or waits only for the page.
func (v *Encoder) Rest(r stream.Run) {
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

// failAnswered sends why the run failed to a client that has answered an interrupt. A client drops its interrupts when
// a run finishes but not when it errors, and would then refuse the user's next message. So the stream ends with
// success.
func (v *Encoder) failAnswered(why string) {
	v.StartText("error")
	v.Text("error", why)
	v.EndText("error")
	v.finish(Outcome{Type: "success"})
}

// leftToPage returns the calls that wait for the client. A client older than 1.0 finds them by their missing results,
// and refuses an outcome that names them.
func (v *Encoder) leftToPage(s *run.State) (ids []string) {
	for _, a := range s.Actions {
		if v.in.Protocol != "" && s.End == nil && a.WaitsForClient() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func (v *Encoder) finish(as Outcome) {
	v.send(Event{Type: "RUN_FINISHED", ThreadID: v.in.ThreadID, RunID: v.in.RunID, Outcome: &as})
}

// Fail reports that the stream ends in an error.
func (v *Encoder) Fail(why string) { v.fail(why, "") }

func (v *Encoder) fail(why, code string) { v.send(Event{Type: "RUN_ERROR", Message: why, Code: code}) }
