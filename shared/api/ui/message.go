package ui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/tell"
)

// Message tells a run as a message of the assistant, whose id is the run's: it is called with its chunks.
type Message func(Chunk)

var _ tell.Voice = Message(nil)

// Begin begins the message.
func (m Message) Begin(r tell.Run) { m(Chunk{Type: "start", MessageID: r.ID}) }

// Changed says how the run stands, in a part that takes the place of the one before.
func (m Message) Changed(r tell.Run) {
	m(Chunk{Type: "data-run", ID: r.ID, Data: &RunData{RunID: r.ID, ThreadID: r.ThreadID, Agent: r.Agent(),
		Status: r.State.Status, Message: r.Error(), Record: run.RecordOf(r.State), Approvals: r.Approvals}})
}

// StartStep begins a step.
func (m Message) StartStep() { m(Chunk{Type: "start-step"}) }

// EndStep ends it.
func (m Message) EndStep() { m(Chunk{Type: "finish-step"}) }

// StartText begins a text.
func (m Message) StartText(id string) { m(Chunk{Type: "text-start", ID: id}) }

// Text adds to it.
func (m Message) Text(id, delta string) { m(Chunk{Type: "text-delta", ID: id, Delta: delta}) }

// EndText ends it.
func (m Message) EndText(id string) { m(Chunk{Type: "text-end", ID: id}) }

// Thought is what the model shows of its thoughts.
func (m Message) Thought(id, text string) {
	m(Chunk{Type: "reasoning-start", ID: id})
	m(Chunk{Type: "reasoning-delta", ID: id, Delta: text})
	m(Chunk{Type: "reasoning-end", ID: id})
}

// Call is a call, which the client carries out only if it waits for the client.
func (m Message) Call(a *run.Action, args json.RawMessage) {
	m(Chunk{Type: "tool-input-available", ToolCallID: a.ID, ToolName: a.Tool, Input: args, Dynamic: true,
		Executed: a.Kind != run.KindCall})
}

// Ask asks for a yes or no to exactly what the call's card shows.
func (m Message) Ask(a *run.Action) {
	m(Chunk{Type: "tool-approval-request", ApprovalID: BoundID(a.ApprovalID, a.ArgsHash), ToolCallID: a.ID,
		Reason: a.Reason})
}

// Done says what came of a call.
func (m Message) Done(a *run.Action, result json.RawMessage) {
	m(Chunk{Type: "tool-output-available", ToolCallID: a.ID, Output: result})
}

// Denied says that a call was not made because its user said no.
func (m Message) Denied(a *run.Action) { m(Chunk{Type: "tool-output-denied", ToolCallID: a.ID}) }

// Failed says why a call was not made, or failed.
func (m Message) Failed(a *run.Action, why string) {
	m(Chunk{Type: "tool-output-error", ToolCallID: a.ID, ErrorText: why})
}

// CaughtUp has no chunk: a message is told from its beginning.
func (m Message) CaughtUp() {}

// Rest finishes the message, for now or for good.
func (m Message) Rest(r tell.Run) {
	finish := "tool-calls"
	switch {
	case r.Error() != "":
		m.Fail(r.Error())
		finish = "error"
	case r.State.End != nil:
		finish = "stop"
	}
	m(Chunk{Type: "finish", Finish: finish})
}

// Fail says that the stream ends in an error.
func (m Message) Fail(why string) { m(Chunk{Type: "error", ErrorText: why}) }
