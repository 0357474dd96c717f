package countersign

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// execution is a call of a tool that is executing.
type execution struct {
	run string
	ctx context.Context // ends when the run goes on without the tool
}

// execute registers a call that is executing. done is called at its end.
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

// inTool reports whether this process executes a tool of the run, and the run waits for it.
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
