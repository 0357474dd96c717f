// Package agui serves clients of AG-UI, the Agent-User Interaction Protocol. It encodes a run in the protocol's events
// and decodes the client's requests. It does no I/O: package api reads, starts and follows the runs.
//
// A client keeps the conversation and sends all of it. Only the user's newest message counts, or the answers to what a
// run has asked and the results of the page's own tools. The stored conversation is the server's: a client that may
// have lost a part of it gets all of it.
package agui

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// Version is the version of the protocol.
const Version = "1.0"

// Key is Countersign's key in a client's state and in an interrupt's metadata.
const Key = "countersign"

// The names of the events with type CUSTOM.
const (
	Asked   = "countersign.asked"   // a call waits for the user, while other calls may continue
	Refused = "countersign.refused" // an answer did not count
	Filed   = "countersign.file"    // the answer has a picture or another file
)

// An Event is one event of the stream. Each type uses some of the fields.
type Event struct {
	Type            string                     `json:"type"`
	ThreadID        string                     `json:"threadId,omitempty"` // the client's own IDs
	RunID           string                     `json:"runId,omitempty"`
	ProtocolVersion string                     `json:"protocolVersion,omitempty"`
	MessageID       string                     `json:"messageId,omitempty"`
	Role            string                     `json:"role,omitempty"`
	Delta           any                        `json:"delta,omitempty"` // text, or a JSON Patch for a state
	ToolCallID      string                     `json:"toolCallId,omitempty"`
	ToolCallName    string                     `json:"toolCallName,omitempty"`
	ParentMessageID string                     `json:"parentMessageId,omitempty"`
	Content         string                     `json:"content,omitempty"`
	Snapshot        map[string]json.RawMessage `json:"snapshot,omitempty"`
	Messages        *[]Message                 `json:"messages,omitempty"`
	Name            string                     `json:"name,omitempty"`
	Value           any                        `json:"value,omitempty"`
	Outcome         *Outcome                   `json:"outcome,omitempty"`
	Message         string                     `json:"message,omitempty"`
	Code            string                     `json:"code,omitempty"`
}

// A Message is one message of the conversation.
type Message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
}

// A ToolCall is a call in an assistant message.
type ToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// An Outcome says why a stream has ended.
type Outcome struct {
	Type       string      `json:"type"`
	Interrupts []Interrupt `json:"interrupts,omitempty"`

	// PendingToolCallIDs are the calls that wait for the page, if the stream does not end in interrupts.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
}

// An Interrupt asks the user about a call.
type Interrupt struct {
	ID             string                      `json:"id"` // the approval's ID
	Reason         string                      `json:"reason"`
	Message        string                      `json:"message"`
	ToolCallID     string                      `json:"toolCallId"`
	ResponseSchema map[string]any              `json:"responseSchema"`
	ExpiresAt      time.Time                   `json:"expiresAt"`
	Metadata       map[string]run.ApprovalView `json:"metadata"`
}

// RunState is the run's state under Key in the client's state.
type RunState struct {
	RunID    string     `json:"runId"`
	ThreadID string     `json:"threadId"`
	Agent    string     `json:"agent"`
	Status   run.Status `json:"status"`
	Record   string     `json:"record,omitempty"` // at the end of the run: what it did and did not do
}

// Ask is the value of an event named Asked.
type Ask struct {
	ApprovalID string `json:"approvalId"`
	ArgsHash   string `json:"argsHash"`
	ToolCallID string `json:"toolCallId"`
	Reason     string `json:"reason,omitempty"`
}

// MadeFile is the value of an event named Filed.
type MadeFile struct {
	attachment.Facts
	RunID string `json:"runId"`
	URL   string `json:"url"` // a data: URL
}

// Refusal is the value of an event named Refused.
type Refusal struct {
	InterruptID string `json:"interruptId"`
	Code        string `json:"code"`
	Message     string `json:"message"`
}
