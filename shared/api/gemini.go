package api

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
)

// postGeminiAgent takes one turn of the terminal agent, in Gemini's own format (seed 002 §5).
func postGeminiAgent(r *request) (any, error) {
	var in struct {
		History    []json.RawMessage `json:"history"`
		TerminalID string            `json:"terminalId"`
		Model      *string           `json:"model"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	key, err := r.key()
	switch {
	case !run.ValidID(in.TerminalID):
		return nil, fault.Invalid("terminalId", "invalid ID")
	case in.Model != nil && *in.Model == "":
		return nil, fault.Invalid("model", "a model name is required")
	case err != nil:
		return nil, err
	}
	q := chat.TurnRequest{UID: r.uid, Email: r.email, Origin: r.Header.Get("Origin"), Agent: run.Terminal,
		Terminal: in.TerminalID, History: in.History, Key: key}
	if in.Model != nil {
		q.Model = *in.Model
	}
	ctx, cancel := r.working()
	defer cancel()
	return r.api.Chat.Turn(ctx, q)
}
