package countersign

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Message is a message of the user, or of the model with its calls.
type Message struct {
	RunID string     `json:"run,omitempty"`
	Role  string     `json:"role"` // user or model, as in Gemini's API
	Text  string     `json:"text,omitempty"`
	Calls []ToolCall `json:"calls,omitempty"` // in the model's order

	// Contents are the message in Gemini's form, byte for byte as it was sent: one content, and the responses to its
	// calls. [History] creates them if they are missing.
	Contents []json.RawMessage `json:"contents,omitempty"`
}

// ToolCall is a call in a [Message], with the result that the model got.
type ToolCall struct {
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // nil while the call has no answer
	Error  string          `json:"error,omitempty"`  // why the call failed or did not run
}

// Messages returns all messages of the session with their calls and results, oldest first. It includes the messages
// that a summary has replaced for the model.
func (s *Session) Messages(ctx context.Context) ([]Message, error) {
	var all []Message
	err := s.parts(ctx, true, func(p *conversation.Parts, own string) error {
		for _, c := range p.Closed {
			all = append(all, messagesOf(c.Run, c.Contents)...)
		}
		all = append(all, messagesOf(own, p.Own)...)
		return nil
	})
	return all, err
}

// History returns the session's contents as the model gets them from now on, in Gemini's form. After a compression
// they begin with the summary.
func (s *Session) History(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	err := s.parts(ctx, false, func(p *conversation.Parts, _ string) error {
		c, _, err := p.Contents(p.Model)
		if err == nil {
			all = c.JSON()
		}
		return err
	})
	return all, err
}

// parts reads the contents of the session's runs: all contents, or only those that the model gets. own is the open
// run.
func (s *Session) parts(ctx context.Context, whole bool, use func(p *conversation.Parts, own string) error) error {
	if err := s.agent.usable(); err != nil {
		return err
	}
	t, last, err := s.stored(ctx)
	if err != nil {
		return err
	}
	ex := s.agent.core.loop.NewExecution(last.ID, nil)
	if t.OpenRun != "" {
		ex = s.agent.core.loop.NewExecution(t.OpenRun, nil)
	}
	if err := ex.LoadOwned(ctx, s.agent.user); err != nil {
		return public(err)
	}
	window := ex.State.ContextWindow()
	if ex.State.End != nil { // the thread already has this part
		window, ex.State = t.Window, &run.State{Input: run.Input{Window: &t.Window, Mark: t.Mark}}
	}
	if whole {
		window = run.ContextWindow{First: 1, Last: window.Last, Count: window.Count}
	}
	p, err := conversation.PartsOf(ctx, ex, window, "")
	if err == nil {
		err = use(p, t.OpenRun)
	}
	if f := fault.As(err); err != nil && f.Code == fault.CodeInternal {
		return public(unit.StoreError(err))
	}
	return public(err)
}

// messagesOf converts stored contents to messages.
func messagesOf(runID string, contents []json.RawMessage) (all []Message) {
	for _, raw := range contents {
		if rs, err := model.Responses(raw); err == nil && len(all) > 0 {
			last := &all[len(all)-1]
			for i := range min(len(rs), len(last.Calls)) {
				last.Calls[i].Result, last.Calls[i].Error = rs[i].Result, rs[i].Error
			}
			last.Contents = append(last.Contents, raw)
			continue
		}
		m := Message{RunID: runID, Role: string(model.User), Contents: []json.RawMessage{raw}}
		if p, err := model.Parse(raw); err == nil {
			m.Role, m.Text = string(model.Answer), p.Text
			for _, c := range p.Calls {
				m.Calls = append(m.Calls, ToolCall{ID: c.ID, Name: c.Name, Args: c.Args})
			}
		} else {
			m.Text = model.Words(raw)
		}
		all = append(all, m)
	}
	return all
}

// History converts messages to Gemini contents. It uses the messages' own bytes if they have them, and otherwise
// creates contents from their texts, calls and results. A call without a result counts as not done. The error names a
// message in a wrong place: Gemini accepts an answer only after a message of the user.
func History(messages []Message) ([]json.RawMessage, error) {
	c, err := model.NewContents(nil)
	if err != nil {
		return nil, public(err)
	}
	for i, m := range messages {
		if err := addMessage(c, m); err != nil {
			return nil, public(fault.Invalid("messages", "message %d is in the wrong place", i).Because(err))
		}
	}
	return c.JSON(), nil
}

func addMessage(c *model.Contents, m Message) error {
	switch {
	case len(m.Contents) > 0:
		if err := c.Append(m.Contents...); err != nil {
			return err
		}
	case m.Role == string(model.User):
		return c.AddUser(m.Text)
	case m.Role != string(model.Answer):
		return fault.Invalid("role", "must be user or model")
	default:
		raw, err := contentOf(m)
		if err != nil {
			return err
		}
		if err := c.AddModel(raw); err != nil {
			return err
		}
	}
	if open := c.Open(); len(open) > 0 {
		return c.AddResponses(responsesOf(m, open))
	}
	return nil
}

// contentOf returns the content of a message without the model's signature.
func contentOf(m Message) (json.RawMessage, error) {
	type call struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args,omitempty"`
	}
	var parts []any
	if m.Text != "" {
		parts = append(parts, map[string]string{"text": m.Text})
	}
	for _, c := range m.Calls {
		parts = append(parts, map[string]call{"functionCall": {c.ID, c.Name, c.Args}})
	}
	return json.Marshal(map[string]any{"role": model.Answer, "parts": parts})
}

func responsesOf(m Message, open []model.Call) []model.Response {
	rs := make([]model.Response, len(open))
	for i, c := range open {
		rs[i] = model.Response{ID: c.ID, Name: c.Name, Error: "It was not done."}
		if i < len(m.Calls) && (m.Calls[i].Result != nil || m.Calls[i].Error != "") {
			rs[i].Result, rs[i].Error = m.Calls[i].Result, m.Calls[i].Error
		}
	}
	return rs
}

// Compress shortens the model's view of the session, whatever its size. It cuts results of tools beyond the newest
// 50,000 tokens, and calls the model once to summarize the ended turns before the newest 30 %. The stored session
// does not change. Compress returns nil if there is nothing to compress. The error is an [*OpenError] if a run of the
// session has not ended.
func (s *Session) Compress(ctx context.Context) (*ChatCompressed, error) {
	if err := s.agent.usable(); err != nil {
		return nil, err
	}
	if _, _, err := s.stored(ctx); err != nil {
		return nil, err
	}
	var made *ChatCompressed
	sink := func(u unit.Update) {
		if z := u.Compressed; z != nil && z.After < z.Before {
			made = &ChatCompressed{u.Seq, z.Before, z.After}
		}
	}
	_, err := s.complete(ctx, func(context.Context) (*move, error) {
		m := newMove(s)
		m.begin = func(ctx context.Context, _ unit.Sink) (*run.View, error) {
			return s.agent.core.loop.Start(ctx, loop.StartRequest{UID: s.agent.user, Agent: s.agent.core.name,
				ThreadID: s.id, Sink: sink}, loop.Compress{Tools: s.agent.core.offered(nil)})
		}
		return m, nil
	})
	return made, err
}
