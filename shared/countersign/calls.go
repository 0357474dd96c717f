package countersign

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// execution is a tool call that is running.
type execution struct {
	run string
	ctx context.Context // ends when the run no longer waits for the tool
}

// execute registers a running call. The tool calls done at its end.
func (c *core) execute(ctx context.Context, call tool.Call) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]execution{}
	}
	c.calls[call.ActionID] = execution{call.RunID, ctx}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, call.ActionID)
	}
}

// inTool reports whether this process is running a tool for which the run waits.
func (c *core) inTool(runID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.calls {
		if e.run == runID && e.ctx.Err() == nil {
			return true
		}
	}
	return false
}
