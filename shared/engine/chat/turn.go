package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// TurnRequest asks for the next turn of an agent that works on a terminal, in Gemini's own form (seed 002 §5). The
// client repeats the request for each turn, and the server carries out the calls.
type TurnRequest struct {
	UID, Origin string
	Email       *string // see loop.StartRequest
	Agent       string
	Terminal    string // ID of the user's terminal, which is the same throughout the conversation
	Model       string // empty: the agent's
	// History is the last answer's history, unchanged, followed by the user's message, if there is one. In a new
	// conversation it is only the user's message.
	History []json.RawMessage
	Key     string // identifies the user's message; empty: the same text, sent again, is another message
}

// TurnReply is the model's turn.
type TurnReply struct {
	Parts   []json.RawMessage `json:"parts"`           // the model's, verbatim
	History []json.RawMessage `json:"history"`         // the whole history, sealed, for the next request
	Calls   []TurnCall        `json:"calls,omitempty"` // the calls in Parts that wait
	// Record, with an answer, has the recorded outcomes of the commands since the user's last message. It does not
	// depend on the model's text.
	Record string `json:"record,omitempty"`
}

// TurnCall is a call that waits: for its run, which may wait for an approval, or for the user's next message.
type TurnCall struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Args     json.RawMessage   `json:"args"`
	RunID    string            `json:"runId,omitempty"` // empty: the user's next message is the answer
	Approval *run.ApprovalView `json:"approval,omitempty"`
	Step     *tool.Step        `json:"step,omitempty"` // how a call with a run is shown
}

// Turn calls the model once, and again if the model's answer needs a correction. First it reads the outcomes of the
// previous turn's calls from the core. As long as one of these calls is in progress, the reply is the previous turn.
// The calls of a turn run one after the other, each as a separate durable run. Errors: a ValidationError
// with the field's name; AuthError not_found for a terminal that is not the user's; PolicyError terminal_busy and
// run_open, after which the client may repeat the request; the errors of the model and of the core.
func (c *Chat) Turn(ctx context.Context, r TurnRequest) (*TurnReply, error) {
	sealed, words, err := newWords(r.History)
	if err != nil {
		return nil, err
	}
	h, err := c.open(r.UID, sealed)
	if err != nil {
		return nil, err
	}
	agent, err := c.onTerminal(r, h)
	if err != nil {
		return nil, err
	}
	if err := c.Core.CheckTerminal(ctx, r.UID, r.Terminal); err != nil {
		return nil, err
	}
	t := &turn{Chat: c, h: h, r: Request{UID: r.UID, Origin: r.Origin, Locale: h.locale, Email: r.Email, agent: agent,
		tools: tool.Set{}}}
	start, err := t.next(ctx, words, r.Key)
	if err != nil {
		return nil, err
	}
	if start == nil {
		return t.reply()
	}
	return t.ask(ctx, *start)
}

// newWords separates the user's new message from the sealed history before it. The only unsealed content may be one
// plain message of the user, at the end.
func newWords(sent []json.RawMessage) (sealed []json.RawMessage, words string, err error) {
	switch {
	case len(sent) == 0:
		return nil, "", errNoWords()
	case len(sent) > maxTurn:
		return nil, "", fault.Invalid("history", "%d entries; the limit is %d", len(sent), maxTurn)
	}
	last := sent[len(sent)-1]
	var fields map[string]json.RawMessage
	if json.Unmarshal(last, &fields) == nil && fields[noteName] != nil {
		return sent, "", nil
	}
	var content struct {
		Role  model.Role `json:"role"`
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	}
	if strictjson.Decode(last, &content) != nil || content.Role != model.User || len(content.Parts) == 0 {
		return nil, "", errForged()
	}
	var all []string
	for _, p := range content.Parts {
		all = append(all, p.Text)
	}
	words = strings.Join(all, "\n")
	switch {
	case visible.Blank(words):
		return nil, "", errNoWords()
	case len(words) > MaxMessage:
		return nil, "", fault.Invalid("history", "the user's message has %d bytes; the limit is %d", len(words),
			MaxMessage)
	}
	return sent[:len(sent)-1], words, nil
}

func errNoWords() error {
	return fault.Invalid("history", "no call in the history waits for an answer; add the user's message at its end")
}

// onTerminal returns the request's agent. The history must be bound to the agent and to the terminal.
func (c *Chat) onTerminal(r TurnRequest, h *history) (*registry.Agent, error) {
	if h.seal == "" {
		h.Agent, h.Terminal = r.Agent, r.Terminal
	}
	if h.Agent != r.Agent || h.Terminal != r.Terminal {
		return nil, fault.Invalid("history", "this conversation belongs to another agent or another terminal; "+
			"continue it there, or start a new conversation")
	}
	agent := c.Core.Agents[r.Agent]
	if agent == nil || !agent.OnTerminal {
		return nil, fault.NotFound()
	}
	if r.Model == "" {
		return agent, nil
	}
	known := append([]string{c.Core.Model.Name()}, c.Core.Models...)
	for _, a := range c.Core.Agents {
		known = append(known, a.Model.Name)
	}
	if !slices.Contains(known, r.Model) {
		return nil, fault.Invalid("model", "this service has no model with this name")
	}
	other := *agent
	other.Model.Name = r.Model
	return &other, nil
}

// turn is one turn of a conversation.
type turn struct {
	*Chat
	h *history
	r Request
}

// next returns the input for the model, or nil if a call of the previous turn is still in progress.
func (t *turn) next(ctx context.Context, words, key string) (*loop.Prompt, error) {
	if len(t.h.calls) > 0 {
		open, err := t.answer(ctx, words)
		if err != nil {
			return nil, err
		}
		if !open {
			kept, err := t.h.clientHistory()
			if err != nil {
				return nil, err
			}
			return &loop.Prompt{Client: &loop.ClientSide{History: *kept}}, nil
		}
		if words == "" {
			return nil, nil
		}
	}
	if words == "" {
		return nil, errNoWords()
	}
	id := run.NewID(t.Core.Random)
	if key != "" {
		id = digest("key", t.h.Terminal, key) // the same request on another terminal is another message
	}
	if id == t.h.Message {
		return nil, fault.Invalid("Idempotency-Key", "this message was answered before; give a new message a new key")
	}
	if err := t.h.addUser(t.r.UID, id, words); err != nil {
		return nil, err
	}
	start, err := t.continued(ctx, t.r.UID, t.h, words)
	return &start, err
}

// answer reads the outcomes of the previous turn's calls, and starts the next call. The user's message answers the call
// that waits for it. answer reports whether a call is still open.
func (t *turn) answer(ctx context.Context, words string) (open bool, err error) {
	if err := t.Chat.ask(ctx, t.r.UID, t.h); err != nil {
		return false, err
	}
	first := slices.IndexFunc(t.h.calls, func(k call) bool { return !k.known() })
	if first >= 0 && words != "" {
		k := &t.h.calls[first]
		if !k.Page {
			return true, nil
		}
		k.Result = strictjson.Text(words)
	}
	return t.goOn(ctx)
}

// goOn carries out the calls of the newest turn, one after the other, until one needs the user or the page. It reports
// whether a call is still open. After a call that was not done, the remaining calls are not started.
func (t *turn) goOn(ctx context.Context) (open bool, err error) {
	failed := false
	for i := range t.h.calls {
		k := &t.h.calls[i]
		switch {
		case k.known():
		case failed:
			k.Error = "It was not run, because an earlier call was not done."
		case k.Page:
			return true, nil
		case k.RunID == "":
			if err := t.start(ctx, k); err != nil {
				return false, err
			}
		}
		if !k.known() {
			return true, nil
		}
		failed = failed || k.Error != ""
	}
	return false, nil
}

// start starts the run that carries out the call.
func (t *turn) start(ctx context.Context, k *call) error {
	used := t.r.agent.Of(t.Core.Tools)[k.model.Name]
	if used == nil {
		k.Error = "This tool no longer exists."
		return nil
	}
	args, err := used.Normalize(k.model.Args)
	if err != nil {
		k.Error = fault.As(err).Message
		return nil
	}
	if k.askedBy == "" {
		k.askedBy = t.Core.Model.Name()
	}
	k.action = &run.Action{ProposedCall: run.ProposedCall{Tool: used.Name, Args: args}}
	return (&effectStarter{Chat: t.Chat, r: t.r, h: t.h}).startAll(ctx, []*call{k})
}

// ask calls the model.
func (t *turn) ask(ctx context.Context, start loop.Prompt) (*TurnReply, error) {
	l, v, countUsage, err := t.begin(ctx, t.r, t.h, start, nil)
	if err != nil {
		return nil, err
	}
	countUsage() // before the commands start, because they change the user's document too
	conv, err := l.Conversation(ctx, t.r.UID, v.RunID)
	if err == nil {
		err = conv.Contents.Fit(MaxHistory)
	}
	if err != nil {
		return nil, err
	}
	t.h.keep(conv.Contents.JSON(), v.RunID, nil)
	switch {
	case conv.End != nil:
		if err := t.failure(conv.End); err != nil {
			return nil, err
		}
		out, err := t.reply()
		if err == nil {
			out.Record = conv.End.Record
		}
		return out, err
	case len(conv.Calls) == 0:
		return nil, fault.New(fault.Tool, "out_of_time", "The request timed out. Please try again.")
	}
	if err := t.take(conv.Calls); err != nil {
		return nil, err
	}
	if _, err := t.goOn(ctx); err != nil {
		return nil, err
	}
	return t.reply()
}

// take stores the calls of the model's turn in the history.
func (t *turn) take(calls []conversation.TurnCall) error {
	t.h.calls = make([]call, len(calls))
	for i, asked := range calls {
		k := &t.h.calls[i]
		k.ID, k.action, k.askedBy = asked.Action.ID, asked.Action, asked.Model
		if asked.Response != nil {
			k.setResponse(*asked.Response)
			continue
		}
		used := t.Core.Tools[asked.Action.Tool]
		k.Page = used != nil && used.Waits()
	}
	return t.h.match()
}

// reply returns the model's newest turn, with the sealed history.
func (t *turn) reply() (*TurnReply, error) {
	out := &TurnReply{Parts: []json.RawMessage{}}
	for _, raw := range slices.Backward(t.h.contents) {
		var c struct {
			Role  model.Role        `json:"role"`
			Parts []json.RawMessage `json:"parts"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, fault.New(fault.Model, model.CodeUnreadable,
				"The model's answer could not be read.").Because(err)
		}
		if c.Role == model.Answer {
			out.Parts = c.Parts
			break
		}
	}
	for _, k := range t.h.calls {
		if k.known() || k.RunID == "" && !k.Page {
			continue
		}
		w := TurnCall{ID: k.ID, Name: k.model.Name, Args: k.model.Args, RunID: k.RunID}
		if k.Tried != nil {
			w.Args = k.Tried
		}
		if k.called != nil {
			w.Approval = k.called.Approval
			for _, a := range k.called.Run.Actions {
				w.Step = a.Step
			}
		}
		out.Calls = append(out.Calls, w)
		if k.Page {
			break // later calls have not started
		}
	}
	var err error
	out.History, err = t.sign(t.r.UID, t.h)
	return out, err
}
