// Package chat answers web pages (seed 001): a conversation that the page keeps and the server does not. Each request
// brings the history, which the server has sealed for its user and agent, and the page's own tools; it is a run of that
// agent with these tools, on a store in memory that lives as long as the request. A page tool is a tool without a
// function, which the page answers. A server action without an effect runs at once; one with an effect is a run of its
// own in the durable core, with everything that the core promises, and the chat waits for it as it waits for the page.
package chat

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// The limits of a request; its body is bounded by the API (1 MiB).
const (
	MaxMessage     = 32 << 10 // bytes of the user's message
	MaxTools       = 128      // page tools
	MaxDescription = 1024     // bytes of a page tool's description
	MaxSchema      = 16 << 10 // bytes of a page tool's schema
	MaxPageState   = 256 << 10
	MaxResult      = 64 << 10 // bytes of a page tool's result
	// bytes of the results of one request that the model gets: above that, each is cut to its share
	MaxResults = 128 << 10
	// bytes of contents that are kept: above that, older results of tools are cut, then the oldest turns are left out
	MaxHistory  = 384 << 10
	maxContents = 1000 // in a history
	maxTurn     = 1001 // with what the user says behind it
)

// Ledger counts what users have used of the model (shared/engine/records).
type Ledger interface {
	// Admit counts a request with its first call of the model, and stores the user's region if the request brought a
	// new one; starts tells whether the request starts a message. What the request uses beyond its first call is
	// counted by another commit (see Chat.settle).
	Admit(ctx context.Context, uid string, l run.Limits, starts bool, sent run.Region) (run.Admission, error)
}

// Chat answers requests of pages. It keeps nothing between them.
type Chat struct {
	Core     *loop.Loop // carries out effects, by the tools that the page agents among its agents have
	Ledger   Ledger
	Taken    Names // names of the deployment's tools, which no page tool may have
	Key      Key
	Audience string // the deployment to which a history is bound, beside its user and agent
}

// Request is a request of a page.
type Request struct {
	UID, Origin string
	Agent       string     // a page agent's name; empty: that of the history, and of a new conversation run.Page
	Region      run.Region // of the user, as far as the page sent it
	Email       *string    // as loop.StartRequest has it
	Message     string     // POST /chat
	MessageID   string     // of the message; empty: one is made, so that a repeated request is another message
	Results     []Result   // POST /chat/results
	History     []json.RawMessage
	Tools       []ToolDefinition
	PageState   json.RawMessage

	tools tool.Set        // of Tools
	agent *registry.Agent // that answers
}

// Result is a page tool's result (seed 001, ToolCallResult).
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

// Category says who runs a tool.
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
	Record  string            `json:"record,omitempty"`  // what the message's effects and the page's calls came to
	Moments []tool.Moment     `json:"moments,omitempty"` // in Message and Record
	Calls   []Pending         `json:"calls,omitempty"`
	Actions []Ended           `json:"actions,omitempty"` // by which the page knows that it may have to load what it shows
	History []json.RawMessage `json:"history"`
}

// Ended is a server action whose outcome this request has learned. One that is sent again may learn it again.
type Ended struct {
	Name  string `json:"name"`
	RunID string `json:"runId"`
	OK    bool   `json:"ok"` // it was carried out
}

// Pending is a call that waits: for the page, or for its user's approval (seed 001, PendingToolCall).
type Pending struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Args     json.RawMessage   `json:"args"`
	Category Category          `json:"category"`
	Approval *run.ApprovalView `json:"approval,omitempty"` // of a server action
	RunID    string            `json:"runId,omitempty"`    // the durable run that carries a server action out
}

// Send answers the user's message. Calls that are still open are closed, with a response that tells the model what is
// known of them; it also gets the recorded outcomes of calls that an earlier message left behind. Errors: a
// ValidationError that names the field, and those of the model and of the core. After those the request may be sent
// again with the same MessageID and history: an action with an effect is not started twice.
func (c *Chat) Send(ctx context.Context, r Request, emit journal.Sink) (*Reply, error) {
	h, err := c.read(&r)
	if err != nil {
		return nil, err
	}
	switch {
	case visible.Blank(r.Message):
		return nil, fault.Invalid("message", "a message is needed")
	case len(r.Message) > MaxMessage:
		return nil, fault.Invalid("message", "the message is longer than %d bytes", MaxMessage)
	}
	if r.MessageID == "" {
		r.MessageID = run.NewID(c.Core.Random)
	}
	if err := h.addUser(r.UID, r.MessageID, r.Message); err != nil {
		return nil, err
	}
	start, err := c.continued(ctx, r.UID, h, r.Message)
	if err != nil {
		return nil, err
	}
	return c.run(ctx, r, h, start, emit)
}

// Answer takes the results of the page's tools for the calls of the last reply, all of them at once. Where approvals
// still wait, the reply is what waits.
func (c *Chat) Answer(ctx context.Context, r Request, emit journal.Sink) (*Reply, error) {
	h, err := c.read(&r)
	if err != nil {
		return nil, err
	}
	if r.MessageID != "" && h.Message != "" && r.MessageID != h.Message {
		return nil, fault.Invalid("messageId", "the calls in the history were asked for by another message")
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
			call.Error = "It still waits for the user's approval; it was not done so far."
			h.carryOver(call)
		case !call.Page:
			call.Error = "The user went on without it; it was not begun."
		default:
			call.Error = "The user went on without it; whether it was done is not known."
		}
	}
	return h.close()
}

// ask reads from the core what became of the actions that wait there.
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
