package agui

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// interrupt returns the request for a decision about exactly what the approval's card shows.
func interrupt(a run.ApprovalView) Interrupt {
	fields := map[string]any{
		"decision": map[string]any{"type": "string", "enum": a.Decisions},
		"argsHash": map[string]any{"type": "string", "const": a.ArgsHash, "description": "The hash of what was shown."},
		"comment":  map[string]any{"type": "string"},
	}
	if slices.Contains(a.Decisions, run.ApproveEdited) {
		fields["editedArgs"] = map[string]any{"type": "object",
			"description": "With " + string(run.ApproveEdited) + "."}
	}
	return Interrupt{ID: a.ApprovalID, Reason: "tool_call", Message: words(a), ToolCallID: a.ActionID,
		ResponseSchema: map[string]any{"type": "object", "properties": fields,
			"required": []string{"decision", "argsHash"}, "additionalProperties": false},
		ExpiresAt: a.ExpiresAt, Metadata: map[string]run.ApprovalView{Key: a}}
}

// words returns the card as plain text.
func words(a run.ApprovalView) string {
	lines := []string{a.Preview.Title}
	for _, f := range a.Preview.Fields {
		lines = append(lines, f.Label+": "+f.Value)
	}
	return strings.Join(append(lines, a.Preview.Warnings...), "\n")
}
