// Package ui serves the AI SDK's useChat. It encodes a run as one assistant message, in chunks of the SDK's UI message
// stream, and decodes the client's requests. It does no I/O: package api reads, starts and follows the runs.
//
// A client keeps the conversation and sends all of it. Only its newest message counts: the user's words, or their
// answers to what the assistant has asked.
package ui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// The header that identifies the stream's protocol and version.
const (
	VersionHeader = "x-vercel-ai-ui-message-stream"
	Version       = "v1"
)

// Done is the data of a stream's last event.
const Done = "[DONE]"

// A Chunk is one event of the stream. Each type uses some of the fields.
type Chunk struct {
	Type       string          `json:"type"`
	MessageID  string          `json:"messageId,omitempty"`
	ID         string          `json:"id,omitempty"`
	Delta      string          `json:"delta,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Dynamic    bool            `json:"dynamic,omitempty"`          // the client has no type for this tool
	Executed   bool            `json:"providerExecuted,omitempty"` // by the server
	ApprovalID string          `json:"approvalId,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Output     json.RawMessage `json:"output,omitempty"`
	ErrorText  string          `json:"errorText,omitempty"`
	Data       *RunData        `json:"data,omitempty"`
	Finish     string          `json:"finishReason,omitempty"`
	URL        string          `json:"url,omitempty"` // of a file
	MediaType  string          `json:"mediaType,omitempty"`
}

// RunData is the data of the part data-run, which each message has once: the current state of the run.
type RunData struct {
	RunID     string             `json:"runId"`
	ThreadID  string             `json:"threadId"`
	Agent     string             `json:"agent"`
	Status    run.Status         `json:"status"`
	Message   string             `json:"message,omitempty"`   // why the run failed
	Record    string             `json:"record,omitempty"`    // at the end of the run: what it did and did not do
	Approvals []run.ApprovalView `json:"approvals,omitempty"` // waiting approvals, as cards show them
}
