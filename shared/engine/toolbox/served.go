package toolbox

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Dynamic provides tools that come and go while a process lives: those of MCP servers (package mcptools). None has the
// name of a tool in Source.Tools.
type Dynamic interface {
	// Tools returns the currently known tools without waiting.
	Tools() tool.Set
	// Report returns the tools of each server, and why others of its tools are not used.
	Report() []tool.ServerTools
	// Await waits for a short time for servers that were never asked.
	Await(ctx context.Context)
	// Renew asks the server of the named tool for its current definition. The error means that the server cannot be
	// reached. It is nil for a name that belongs to no server.
	Renew(ctx context.Context, name string) error
}

// Refresh replaces the tools with those that are available now, if the run's agent may call tools that come and go.
func (b *Toolbox) Refresh(ctx context.Context, agent string) {
	if a := b.from.Agents.Get(agent); b.from.Served != nil && (a == nil || a.HasDynamic()) {
		b.Tools = b.from.Await(ctx)
	}
}

// Renew refreshes the definition of the action's tool from its server, so that cards, decisions and calls use the
// current one. A tool that only reads and needs no approval is not refreshed. The error means that the server cannot be
// reached.
func (b *Toolbox) Renew(ctx context.Context, a *run.Action) error {
	t := b.Tools[a.Tool]
	if b.from.Served == nil || b.from.Tools[a.Tool] != nil || t != nil && !t.SideEffect && !a.RequiresApproval {
		return nil
	}
	err := b.from.Served.Renew(ctx, a.Tool)
	if err == nil {
		b.Tools = b.from.Now()
	}
	return err
}
