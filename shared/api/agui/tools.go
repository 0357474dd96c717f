package agui

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// toolOfPage is a tool that the page has of its own.
type toolOfPage struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// PageTools returns the page's own tools, as it describes them.
func (r Request) PageTools() (all []run.PageTool) {
	for _, t := range r.Tools {
		if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
			t.Parameters = json.RawMessage(`{"type":"object"}`)
		}
		all = append(all, run.PageTool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
	}
	return all
}

// A Result is what the client says that a call has returned.
type Result struct {
	CallID string
	Field  string // where it stands in the request
	Failed bool   // it says why the call was not done

	content json.RawMessage
}

// Results returns what the client says that calls have returned since its user has spoken, the newest first. Most of it
// is its history: that of calls that do not wait for the page is nobody's concern, and is not read.
func (r Request) Results() (all []Result) {
	for at, raw := range slices.Backward(r.Messages) {
		var m struct {
			Role       string          `json:"role"`
			ToolCallID string          `json:"toolCallId"`
			Content    json.RawMessage `json:"content"`
			Error      json.RawMessage `json:"error"`
		}
		if strictjson.DecodeKnown(strictjson.Mend(raw), &m) != nil {
			continue
		}
		field := fmt.Sprintf("messages/%d/", at)
		switch {
		case m.Role == "user":
			return all
		case m.Role != "tool":
		case len(m.Error) > 0 && string(m.Error) != "null" && string(m.Error) != `""`:
			all = append(all, Result{m.ToolCallID, field + "error", true, m.Error})
		default:
			all = append(all, Result{m.ToolCallID, field + "content", false, m.Content})
		}
	}
	return all
}

// Text returns what was returned, or why nothing was.
func (r Result) Text() (string, error) { return content(r.Field, r.content) }
