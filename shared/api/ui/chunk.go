// Package ui is the face that runs have for the AI SDK's useChat: a run as one message of the assistant, told in chunks
// of its UI message stream, and what its requests ask for. It is pure: package api reads, begins and follows the runs.
//
// A client keeps the conversation and sends all of it. What counts of a request is its newest message alone: the user's
// words, or their answers to what the assistant has asked.
package ui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// The header by which the client's own servers say which stream this is.
const (
	VersionHeader = "x-vercel-ai-ui-message-stream"
	Version       = "v1"
)

// Done is the data of the last event of a stream.
const Done = "[DONE]"

// A Chunk is one event of the stream: its type, and the fields that the type has.
type Chunk struct {
	Type       string          `json:"type"`
	MessageID  string          `json:"messageId,omitempty"`
	ID         string          `json:"id,omitempty"`
	Delta      string          `json:"delta,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Dynamic    bool            `json:"dynamic,omitempty"`          // no tool that the client knows by a type of its own
	Executed   bool            `json:"providerExecuted,omitempty"` // not by the client
	ApprovalID string          `json:"approvalId,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Data       *RunData        `json:"data,omitempty"`
	Finish     string          `json:"finishReason,omitempty"`
}

// RunData is the data of the part data-run, which each message has once: the run as it stands.
type RunData struct {
	RunID     string             `json:"runId"`
	ThreadID  string             `json:"threadId"`
	Agent     string             `json:"agent"`
	Status    run.Status         `json:"status"`
	Message   string             `json:"message,omitempty"`   // why it has failed
	Record    string             `json:"record,omitempty"`    // what it has done and what it has not, at its end
	Approvals []run.ApprovalView `json:"approvals,omitempty"` // that it waits for, as cards show them
}
