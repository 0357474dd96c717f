// Package agui is the face that runs have for clients of AG-UI, the Agent-User Interaction Protocol: a run told in its
// events, and what its requests ask for. It is pure: package api reads, begins and follows the runs.
//
// A client keeps the conversation and sends all of it. What counts of a request is the user's newest message, or the
// answers to what a run has asked and what the page's own tools have returned; the conversation is our own, and a
// client that may have lost a part of it is sent all of it.
package agui

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Version is the version of the protocol.
const Version = "1.0"

// Key is the name of what is ours in a client's state and in an interrupt's metadata.
const Key = "countersign"

// The events whose type is CUSTOM, by their names.
const (
	Asked   = "countersign.asked"   // a call waits for its user, while others may go on
	Refused = "countersign.refused" // an answer did not count
)

// An Event is one event of the stream: its type, and the fields that the type has.
type Event struct {
	Type            string                     `json:"type"`
	ThreadID        string                     `json:"threadId,omitempty"` // the client's own words for these two
	RunID           string                     `json:"runId,omitempty"`
	ProtocolVersion string                     `json:"protocolVersion,omitempty"`
	MessageID       string                     `json:"messageId,omitempty"`
	Role            string                     `json:"role,omitempty"`
	Delta           any                        `json:"delta,omitempty"` // text, or of a state a JSON Patch
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

// A Message is one of the conversation.
type Message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
}

// A ToolCall is a call in a message of the assistant.
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

	// PendingToolCallIDs are the calls that wait for the page, of a stream that does not end in interrupts.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
}

// An Interrupt asks the user about a call.
type Interrupt struct {
	ID             string                      `json:"id"` // the approval's
	Reason         string                      `json:"reason"`
	Message        string                      `json:"message"`
	ToolCallID     string                      `json:"toolCallId"`
	ResponseSchema map[string]any              `json:"responseSchema"`
	ExpiresAt      time.Time                   `json:"expiresAt"`
	Metadata       map[string]run.ApprovalView `json:"metadata"`
}

// RunState is what the client's state has of the run, under Key.
type RunState struct {
	RunID    string     `json:"runId"`
	ThreadID string     `json:"threadId"`
	Agent    string     `json:"agent"`
	Status   run.Status `json:"status"`
	Record   string     `json:"record,omitempty"` // what it has done and what it has not, at its end
}

// Ask is the value of an event called Asked.
type Ask struct {
	ApprovalID string `json:"approvalId"`
	ArgsHash   string `json:"argsHash"`
	ToolCallID string `json:"toolCallId"`
	Reason     string `json:"reason,omitempty"`
}

// Refusal is the value of an event called Refused.
type Refusal struct {
	InterruptID string `json:"interruptId"`
	Code        string `json:"code"`
	Message     string `json:"message"`
}
