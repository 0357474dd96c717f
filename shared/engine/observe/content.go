package observe

import (
	"cmp"
	"encoding/json"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
)

// The content attributes, which spans have only with Recorder.TraceContent. Messages follow the JSON schemas of the
// conventions (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/).
const (
	attrInstructions attribute.Key = "gen_ai.system_instructions"
	attrInput        attribute.Key = "gen_ai.input.messages"
	attrOutput       attribute.Key = "gen_ai.output.messages"
	attrArguments    attribute.Key = "gen_ai.tool.call.arguments"
	attrResult       attribute.Key = "gen_ai.tool.call.result"
)

// maxContent is the maximum size of one content attribute, in bytes. A larger value is left out, because a part of a
// JSON text is not JSON.
const maxContent = 64 << 10

// content returns the attribute, unless its value is empty or too long.
func content(key attribute.Key, value []byte) (out []attribute.KeyValue) {
	if len(value) > 0 && len(value) <= maxContent {
		out = append(out, key.String(string(value)))
	}
	return out
}

// said is a message in the form of the conventions.
type said struct {
	Role   string     `json:"role"`
	Parts  []saidPart `json:"parts"`
	Finish string     `json:"finish_reason,omitempty"` // of a model's message
}

type saidPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// spoken holds the parts of a Gemini content that messages uses.
type spoken struct {
	Role  string
	Parts []struct {
		Text         string
		Thought      bool
		FunctionCall *struct {
			ID, Name string
			Args     json.RawMessage
		}
		FunctionResponse *struct {
			ID, Name string
			Response json.RawMessage
		}
	}
}

// messages returns contents as messages in JSON, or nil if one cannot be read.
func messages(contents []json.RawMessage, finish string) []byte {
	all := []said{}
	for _, raw := range contents {
		var c spoken
		if json.Unmarshal(raw, &c) != nil {
			return nil
		}
		m := said{Role: "user", Parts: []saidPart{}, Finish: finish}
		if c.Role == "model" {
			m.Role = "assistant"
		}
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				m.Parts = append(m.Parts, saidPart{Type: "tool_call", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name,
					Arguments: p.FunctionCall.Args})
			case p.FunctionResponse != nil:
				m.Role = "tool"
				m.Parts = append(m.Parts, saidPart{Type: "tool_call_response", ID: p.FunctionResponse.ID,
					Name: p.FunctionResponse.Name, Result: p.FunctionResponse.Response})
			case p.Thought:
				m.Parts = append(m.Parts, saidPart{Type: "reasoning", Content: p.Text})
			case p.Text != "":
				m.Parts = append(m.Parts, saidPart{Type: "text", Content: p.Text})
			}
		}
		all = append(all, m)
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return b
}

// asked returns the attributes of the instructions and messages sent to the model.
func asked(req model.Request) []attribute.KeyValue {
	system, err := json.Marshal([]saidPart{{Type: "text", Content: req.System}})
	if err != nil {
		return nil
	}
	return slices.Concat(content(attrInstructions, system), content(attrInput, messages(req.Contents, "")))
}

// answered returns the attributes of the model's answer.
func answered(r *model.Reply) []attribute.KeyValue {
	if len(r.Content) == 0 {
		return nil
	}
	return content(attrOutput, messages([]json.RawMessage{r.Content}, cmp.Or(r.Finish, "STOP")))
}

// done returns the attributes of a tool's arguments and result.
func done(a *run.Action) []attribute.KeyValue {
	return slices.Concat(content(attrArguments, a.Args), content(attrResult, a.Result))
}
