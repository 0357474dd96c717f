// Package chat is the page agent (seed 001): a conversation that the page keeps and the server does not. Each request
// brings the history, which the server has signed, and runs the same loop as every other run, on a store in memory that
// lives as long as the request. A page tool is a tool without a body that the page answers. A server action that
// changes nothing runs at once; one with an effect is a run of its own in the durable core, with everything that the
// core promises, and the chat waits for it as it waits for the page.
package chat

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// The limits of a request; its body is bounded by the API (1 MiB).
const (
	MaxMessage     = 32 << 10 // bytes of what the user says
	MaxTools       = 128      // page tools
	MaxDescription = 1024     // bytes of a page tool's description
	MaxSchema      = 16 << 10 // bytes of a page tool's schema
	MaxPageState   = 256 << 10
	MaxResult      = 64 << 10 // bytes of what a page tool answers
	// bytes of what one request's tools answered that the model is told: of more, each is cut to its share
	MaxResults = 128 << 10
	// bytes of contents that are kept: older answers of tools are cut, then the oldest turns are left out
	MaxHistory  = 384 << 10
	maxContents = 1000 // in a history
)

// Core carries out what has an effect: the durable loop.
type Core interface {
	StartCall(ctx context.Context, q loop.StartRequest) (*loop.CallResult, error)
	CallResult(ctx context.Context, uid, runID string) (*loop.CallResult, error)
}

// Ledger keeps what users have used of the model (shared/records).
type Ledger interface {
	// Admit counts a request with its first call of the model, and keeps what it told of its user's region; begins is
	// whether it begins something. What it uses beyond that is counted by another commit (Chat.settle says why).
	Admit(ctx context.Context, uid string, l agent.Limits, begins bool, told agent.Region) (agent.Admission, error)
}

// Chat answers requests of pages. It keeps nothing between them.
type Chat struct {
	Model   model.Model
	Core    Core
	Ledger  Ledger
	Actions tool.Set // the declared actions that the model may call, under the names that it calls them by
	Taken   Names    // of the deployment's tools, which no page's tool may have
	Key     Key
	Agent   string // what a history is bound to beside its user: another agent's is refused
	Prefix  string // what the system prompt begins with; empty: a sentence of ours
	Profile loop.Profile
	Log     *slog.Logger
	Now     func() time.Time
	Random  io.Reader
}

// Request is a request of a page.
type Request struct {
	UID, Origin string
	Region      agent.Region // of the user, as far as the page told of it
	Message     string       // POST /chat
	MessageID   string       // of the message; empty: one is made, and what is sent again is another message
	Results     []Result     // POST /chat/results
	History     []json.RawMessage
	Tools       []ToolDefinition
	PageState   json.RawMessage

	tools tool.Set // of Tools
}

// Result is what a page tool answered (seed 001, ToolCallResult).
type Result struct {
	CallID  string `json:"callId"`
	Result  string `json:"result"` // JSON, or words
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
	Calls   []Pending         `json:"calls,omitempty"`
	History []json.RawMessage `json:"history"`
}

// Pending is a call that waits: for the page, or for its user's approval (seed 001, PendingToolCall).
type Pending struct {
	ID       string              `json:"id"`
	Name     string              `json:"name"`
	Args     json.RawMessage     `json:"args"`
	Category Category            `json:"category"`
	Approval *agent.ApprovalView `json:"approval,omitempty"` // of a server action
	RunID    string              `json:"runId,omitempty"`    // the durable run that carries a server action out
}

// Send takes the user's message. Calls that are still open are told to the model as not done, and what became since of
// those that an earlier message left behind, as the record has it. Errors: ValidationError that names the field; those
// of the model and of the core; then the request may be sent again with the same MessageID and history: an action with
// an effect is not proposed twice.
func (c *Chat) Send(ctx context.Context, r Request, emit loop.Sink) (*Reply, error) {
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
		r.MessageID = agent.NewID(c.Random)
	}
	if err := h.addUser(r.UID, r.MessageID, r.Message); err != nil {
		return nil, err
	}
	news, err := c.systemNote(ctx, r.UID, h)
	if err != nil {
		return nil, err
	}
	if err := c.abandon(ctx, r.UID, h); err != nil {
		return nil, err
	}
	return c.run(ctx, r, h, loop.StartRequest{Prompt: r.Message, SystemNote: news,
		History: &loop.ClientHistory{Contents: h.contents}}, emit)
}

// Answer takes what the page's tools answered to the calls of the last reply, all of them at once. Where approvals
// still wait, the reply is what waits.
func (c *Chat) Answer(ctx context.Context, r Request, emit loop.Sink) (*Reply, error) {
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
	pending, err := c.ask(ctx, r.UID, h)
	if err != nil {
		return nil, err
	}
	if len(pending) > 0 {
		return c.reply(r.UID, h, &Reply{Type: "tool-calls", Calls: pending})
	}
	kept, err := h.clientHistory()
	if err != nil {
		return nil, err
	}
	return c.run(ctx, r, h, loop.StartRequest{History: kept}, emit)
}

// abandon answers what is open for a user who goes on without it.
func (c *Chat) abandon(ctx context.Context, uid string, h *history) error {
	if len(h.calls) == 0 {
		return nil
	}
	if _, err := c.ask(ctx, uid, h); err != nil {
		return err
	}
	for i := range h.calls {
		switch call := &h.calls[i]; {
		case call.known():
		case call.RunID != "":
			call.Error = "It still waits for the user's approval; it was not done so far."
			h.carryOver(call)
		default:
			call.Error = "The user went on without it; whether it was done is not known."
		}
	}
	return h.close()
}

// ask asks the core what became of the actions that wait for it, and gives those that still do.
func (c *Chat) ask(ctx context.Context, uid string, h *history) ([]Pending, error) {
	var pending []Pending
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
			return nil, err
		}
		if called.Terminal() {
			call.setResponse(called.Response)
			continue
		}
		pending = append(pending, h.waiting(i, called))
	}
	return pending, nil
}

// reply signs the history into the reply.
func (c *Chat) reply(uid string, h *history, r *Reply) (*Reply, error) {
	signed, err := c.sign(uid, h)
	if err != nil {
		return nil, err
	}
	r.History = signed
	return r, nil
}
