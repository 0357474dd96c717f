// Package chat answers web pages (seed 001). The page keeps the conversation; the server does not. Each request brings
// the history, which the server has sealed for one user and one agent, and the page's own tools. The request becomes a
// run of that agent with these tools, in a memory store that lives as long as the request. The page carries out the
// calls of its own tools and sends their results. A server action without an effect runs at once. A server action with
// an effect is a separate run in the durable core, with all guarantees of the core. The chat waits for it as it waits
// for the page.
package chat

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// The limits of a request. The API limits its body to 1 MiB.
const (
	MaxMessage     = 32 << 10 // bytes of the user's message
	MaxTools       = 128      // page tools
	MaxDescription = 1024     // bytes of a page tool's description
	MaxSchema      = 16 << 10 // bytes of a page tool's schema
	MaxPageState   = 256 << 10
	MaxResult      = 64 << 10 // bytes of a page tool's result
	// bytes of all results of one request that the model gets; if they are larger, each is cut to its share
	MaxResults = 128 << 10
	// bytes of contents that are kept; above that, older tool results are cut, and then the oldest turns are left out
	MaxHistory  = 384 << 10
	maxContents = 1000 // in a history
	maxTurn     = 1001 // in the history of a turn, with the user's new message
)

// Ledger counts the users' model usage, and stores their files (shared/engine/records).
type Ledger interface {
	// Admit counts a request and its first model call, and stores the user's locale if the request brought a new one.
	// starts reports whether the request starts a message. Another commit counts the rest of the request's usage (see
	// Chat.settle).
	Admit(ctx context.Context, uid string, l run.Limits, starts bool, sent run.Locale) (run.Admission, error)

	// Upload stores a file of the user. It is deleted after a day unless a run has it.
	Upload(ctx context.Context, uid string, f attachment.File) (attachment.Upload, error)
}

// Chat answers requests of pages. It stores nothing between them.
type Chat struct {
	Core     *loop.Loop // carries out effects with the tools of its page agents
	Ledger   Ledger
	Taken    Names // names of the deployment's tools, which no page tool may have
	Key      Key
	Audience string // the deployment that a history is bound to, in addition to its user and agent
}

// Request is a request of a page.
type Request struct {
	UID, Origin string
	Agent       string            // a page agent's name; empty: the history's agent, or run.Page in a new conversation
	Model       string            // empty: the history's model, or the agent's in a new conversation
	Locale      run.Locale        // the user's, as far as the page sent it
	Email       *string           // see loop.StartRequest
	Message     string            // POST /chat
	Files       []attachment.File // with Message; types checked by the caller
	MessageID   string            // empty: Send makes one, so a repeated request is another message
	Results     []Result          // POST /chat/results
	History     []json.RawMessage
	Tools       []ToolDefinition
	PageState   json.RawMessage

	tools tool.Set        // made of Tools
	agent *registry.Agent // answers the request
}

// Result is the result of a page tool's call (seed 001, ToolCallResult).
type Result struct {
	CallID  string `json:"callId"`
	Result  string `json:"result"` // JSON, or plain text
	IsError bool   `json:"isError"`
}

// ToolDefinition is a tool that the page runs (seed 001, SerializedToolDef).
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Category    Category        `json:"category"`
}

// Category says whether the page or the server runs a tool.
type Category string

// The categories.
const (
	PageAutomation Category = "page-automation"
	ServerAction   Category = "server-action"
)

// Reply is the answer to both requests (seed 001, SendMessageOutput).
type Reply struct {
	Type    string            `json:"type"` // "response" or "tool-calls"
	Message string            `json:"message,omitempty"`
	Record  string            `json:"record,omitempty"`  // outcomes of the message's effects and of the page's calls
	Moments []tool.Moment     `json:"moments,omitempty"` // points in time that Message and Record mention
	Calls   []Pending         `json:"calls,omitempty"`
	Actions []Ended           `json:"actions,omitempty"` // the page may have to reload the data that they changed
	History []json.RawMessage `json:"history"`
}

// Ended is a server action whose outcome this request has learned. A repeated request may report the action again.
type Ended struct {
	Name  string `json:"name"`
	RunID string `json:"runId"`
	OK    bool   `json:"ok"` // the action ran
}

// Pending is a call that waits for the page or for the user's approval (seed 001, PendingToolCall).
type Pending struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Args     json.RawMessage   `json:"args"`
	Category Category          `json:"category"`
	Approval *run.ApprovalView `json:"approval,omitempty"` // for a server action
	RunID    string            `json:"runId,omitempty"`    // the durable run of a server action
}

// Send answers the user's message. It closes the calls that are still open. Their responses inform the model of all
// that is known about them. The model also gets the recorded outcomes of calls that an earlier message left behind.
// Errors: a ValidationError with the field's name, and the errors of the model and of the core. After a model or core
// error, the page may repeat the request with the same MessageID and history; no action with an effect is started
// twice.
func (c *Chat) Send(ctx context.Context, r Request, emit unit.Sink) (*Reply, error) {
	h, err := c.read(&r)
	if err != nil {
		return nil, err
	}
	switch {
	case visible.Blank(r.Message):
		return nil, fault.Invalid("message", "a message is required")
	case len(r.Message) > MaxMessage:
		return nil, fault.Invalid("message", "%d bytes; the limit is %d", len(r.Message), MaxMessage)
	}
	if r.MessageID == "" {
		r.MessageID = run.NewID(c.Core.Random)
	}
	if err := c.upload(ctx, r.UID, r.Files); err != nil {
		return nil, err
	}
	if err := h.addUser(r.UID, r.MessageID, r.Message, r.Files...); err != nil {
		return nil, err
	}
	start, err := c.continued(ctx, r.UID, h, r.Message)
	if err != nil {
		return nil, err
	}
	start.Files, h.FilesBefore = r.Files, h.FilesBefore || len(r.Files) > 0
	return c.run(ctx, r, h, start, emit)
}

// Answer takes the results of the page's tools for all calls of the last reply. If approvals still wait, the reply
// contains the waiting calls.
func (c *Chat) Answer(ctx context.Context, r Request, emit unit.Sink) (*Reply, error) {
	h, err := c.read(&r)
	if err != nil {
		return nil, err
	}
	if r.MessageID != "" && h.Message != "" && r.MessageID != h.Message {
		return nil, fault.Invalid("messageId", "the calls in the history belong to another message")
	}
	h.identify(r.UID, r.MessageID)
	if err := h.answer(r.Results); err != nil {
		return nil, err
	}
	if err := c.ask(ctx, r.UID, h); err != nil {
		return nil, err
	}
	if pending := h.pending(); len(pending) > 0 {
		return c.reply(r.UID, h, &Reply{Type: "tool-calls", Calls: pending})
	}
	kept, err := h.clientHistory()
	if err != nil {
		return nil, err
	}
	return c.run(ctx, r, h, loop.Prompt{Client: &loop.ClientSide{History: *kept}}, emit)
}

// abandon answers the open calls of a user who continues without them.
func (c *Chat) abandon(ctx context.Context, uid string, h *history) error {
	if len(h.calls) == 0 {
		return nil
	}
	if err := c.ask(ctx, uid, h); err != nil {
		return err
	}
	for i := range h.calls {
		switch call := &h.calls[i]; {
		case call.known():
		case call.RunID != "":
			call.Error = "It still waits for the user's approval; it has not been done yet."
			h.carryOver(call)
		case !call.Page:
			call.Error = "The user continued without it; it was not started."
		default:
			call.Error = "The user continued without it; it is unknown whether it was done."
		}
	}
	return h.close()
}

// ask reads the outcomes of the waiting actions from the core.
func (c *Chat) ask(ctx context.Context, uid string, h *history) error {
	for i := range h.calls {
		call := &h.calls[i]
		if call.RunID == "" || call.known() {
			continue
		}
		called, err := c.Core.CallResult(ctx, uid, call.RunID)
		if fault.Is(err, fault.Auth, fault.CodeNotFound) {
			call.Error = "Its conversation was deleted, so it was not done."
			continue
		}
		if err != nil {
			return err
		}
		h.take(call, called)
	}
	return nil
}

// reply returns r with the sealed history.
func (c *Chat) reply(uid string, h *history, r *Reply) (*Reply, error) {
	signed, err := c.sign(uid, h)
	if err != nil {
		return nil, err
	}
	r.History, r.Actions = signed, h.ended
	return r, nil
}
