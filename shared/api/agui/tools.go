package agui

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// toolOfPage is a tool of the page's own.
type toolOfPage struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// PageTools returns the page's own tools as the page describes them.
func (r Request) PageTools() (all []run.PageTool) {
	for _, t := range r.Tools {
		if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
			t.Parameters = json.RawMessage(`{"type":"object"}`)
		}
		all = append(all, run.PageTool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
	}
	return all
}

// A Result is the result of a call, as the client reports it.
type Result struct {
	CallID string
	Field  string // place in the request, for errors
	Failed bool   // the content says why the call failed

	content json.RawMessage
}

// Results returns the results that the client reports since the user's last message, newest first. Most of them are
// history, which the caller ignores without reading it.
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

// Text returns the result, or why the call failed.
func (r Result) Text() (string, error) {
	return content(r.Field, r.content, func(at string, _ part) error {
		return fault.Invalid(at, "only text is accepted in a result")
	})
}
