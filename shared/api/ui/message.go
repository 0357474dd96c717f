package ui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
)

// Message encodes a run as an assistant message with the run's ID. The function receives each chunk.
type Message func(Chunk)

var _ stream.Encoder = Message(nil)

// Begin starts the message.
func (m Message) Begin(r stream.Run) { m(Chunk{Type: "start", MessageID: r.ID}) }

// Changed sends the run's current state, in a part that replaces the previous one.
func (m Message) Changed(r stream.Run) {
	m(Chunk{Type: "data-run", ID: r.ID, Data: &RunData{RunID: r.ID, ThreadID: r.ThreadID, Agent: r.Agent(),
		Status: r.State.Status, Message: r.Error(), Record: run.RecordOf(r.State), Approvals: r.Approvals}})
}

// StartStep starts a step.
func (m Message) StartStep() { m(Chunk{Type: "start-step"}) }

// EndStep ends the step.
func (m Message) EndStep() { m(Chunk{Type: "finish-step"}) }

// StartText starts a text.
func (m Message) StartText(id string) { m(Chunk{Type: "text-start", ID: id}) }

// Text adds to the text.
func (m Message) Text(id, delta string) { m(Chunk{Type: "text-delta", ID: id, Delta: delta}) }

// EndText ends the text.
func (m Message) EndText(id string) { m(Chunk{Type: "text-end", ID: id}) }

// StartThought starts the thoughts that the model shows.
func (m Message) StartThought(id string) { m(Chunk{Type: "reasoning-start", ID: id}) }

// Thought adds to the thoughts.
func (m Message) Thought(id, delta string) { m(Chunk{Type: "reasoning-delta", ID: id, Delta: delta}) }

// EndThought ends the thoughts.
func (m Message) EndThought(id string) { m(Chunk{Type: "reasoning-end", ID: id}) }

// File sends a file of the answer.
func (m Message) File(f stream.File) {
	m(Chunk{Type: "file", URL: f.DataURL(), MediaType: f.Facts.Type})
}

// Call sends a call. The client executes it only if it is a call for the client.
func (m Message) Call(a *run.Action, args json.RawMessage) {
	m(Chunk{Type: "tool-input-available", ToolCallID: a.ID, ToolName: a.Tool, Input: args, Dynamic: true,
		Executed: a.Kind != run.KindCall})
}

// Ask asks the user to approve or reject exactly what the call's card shows.
func (m Message) Ask(a *run.Action) {
	m(Chunk{Type: "tool-approval-request", ApprovalID: BoundID(a.ApprovalID, a.ArgsHash), ToolCallID: a.ID,
		Reason: a.Reason})
}

// Done sends the result of a call.
func (m Message) Done(a *run.Action, result json.RawMessage) {
	m(Chunk{Type: "tool-output-available", ToolCallID: a.ID, Output: result})
}

// Denied reports that the user rejected a call.
func (m Message) Denied(a *run.Action) { m(Chunk{Type: "tool-output-denied", ToolCallID: a.ID}) }

// Failed reports why a call did not run, or failed.
func (m Message) Failed(a *run.Action, why string) {
	m(Chunk{Type: "tool-output-error", ToolCallID: a.ID, ErrorText: why})
}

// CaughtUp sends nothing: a message is streamed from its beginning.
func (m Message) CaughtUp() {}

// Rest finishes the message, until the run continues or for good.
func (m Message) Rest(r stream.Run) {
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

// Fail reports that the stream ends in an error.
func (m Message) Fail(why string) { m(Chunk{Type: "error", ErrorText: why}) }
