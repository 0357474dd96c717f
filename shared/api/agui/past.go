package agui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// past collects the stored part of a run as messages, which are sent at once.
type past struct{ messages []Message }

func (p *past) add(m Message) { p.messages = append(p.messages, m) }

// message returns the message with the ID, and creates it if necessary.
func (p *past) message(id string) *Message {
	for i := range p.messages {
		if p.messages[i].ID == id {
			return &p.messages[i]
		}
	}
	p.add(Message{ID: id, Role: "assistant"})
	return &p.messages[len(p.messages)-1]
}

func (p *past) call(parent string, a *run.Action, args json.RawMessage) {
	c := ToolCall{ID: a.ID, Type: "function"}
	c.Function.Name, c.Function.Arguments = a.Tool, string(args)
	m := p.message(parent)
	m.ToolCalls = append(m.ToolCalls, c)
}
