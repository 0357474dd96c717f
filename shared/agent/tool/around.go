package tool

import (
	"context"
	"encoding/json"
)

// Execute is the form of the function that runs a call: [Tool.Execute].
type Execute func(ctx context.Context, c Call) (json.RawMessage, error)

// Around returns a copy of the tool. Its Execute calls around, which gets the tool's own function and decides whether
// to call it.
func (t *Tool) Around(around func(ctx context.Context, c Call, execute Execute) (json.RawMessage, error)) *Tool {
	own := *t
	own.functions = wrapped{t.functions, around}
	return &own
}

// wrapped are the functions of a tool with another execute.
type wrapped struct {
	functions
	around func(ctx context.Context, c Call, execute Execute) (json.RawMessage, error)
}

func (w wrapped) execute(ctx context.Context, c Call) (json.RawMessage, error) {
	return w.around(ctx, c, w.functions.execute)
}
