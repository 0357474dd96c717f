package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/conversation"
)

// Conversation returns the user's run in a form that a client can keep.
func (l *Loop) Conversation(ctx context.Context, uid, runID string) (*conversation.Conversation, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return nil, err
	}
	contents, err := conversation.Contents(ex)
	if err != nil {
		return nil, err
	}
	c := &conversation.Conversation{Contents: contents, End: ex.State.End}
	if c.End != nil || len(ex.State.Open()) == 0 {
		return c, nil
	}
	responses := conversation.Responses(ex, len(ex.State.Turns))
	for i, a := range ex.State.Current() {
		call := conversation.TurnCall{Action: a, Model: ex.State.Turns[a.Turn-1].Model}
		if a.Terminal() {
			call.Response = &responses[i]
		}
		c.Calls = append(c.Calls, call)
	}
	return c, nil
}
