package agui

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// past is what a client is told of a run at once, as messages.
type past struct{ messages []Message }

func (p *past) add(m Message) { p.messages = append(p.messages, m) }

// message returns the message with the id, which it makes where there is none.
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
