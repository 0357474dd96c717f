package load

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/testkit"
)

// A face describes how one kind of client requests a stream and reads its events.
type face struct {
	path  string
	asks  func(id string) any // returns the body of a request, which has the ID if the API takes one
	names string              // type of the event that names the run
	delta string              // type of the events that have a piece of the model's text
	ends  string              // type of the last event
}

var (
	ownFace = face{"/api/agent/run/stream", func(string) any { return map[string]string{"prompt": words} },
		"status", "delta", "result"}
	uiFace = face{"/api/agent/ui", func(id string) any {
		return map[string]any{"id": id, "messages": []any{map[string]any{"id": id, "role": "user",
			"parts": []any{map[string]string{"type": "text", "text": words}}}}}
	}, "data-run", "text-delta", "finish"}
	aguiFace = face{"/api/agent/agui", func(id string) any {
		return map[string]any{"threadId": id, "runId": id, "tools": []any{}, "context": []any{},
			"messages": []any{map[string]string{"id": id, "role": "user", "content": words}}}
	}, "STATE_SNAPSHOT", "TEXT_MESSAGE_CONTENT", "RUN_FINISHED"}
)

const words = "say much"

// run returns the id of the run that the event names, or "".
func (f face) run(l testkit.Line) (string, error) {
	var of struct {
		Data     struct{ RunID string }
		Snapshot struct{ Countersign struct{ RunID string } }
	}
	if l.Type != f.names {
		return "", nil
	}
	err := json.Unmarshal(l.Text, &of)
	switch {
	case of.Data.RunID != "":
		return of.Data.RunID, err
	case of.Snapshot.Countersign.RunID != "":
		return of.Snapshot.Countersign.RunID, err
	}
	return l.RunID, err
}
