package journal

import (
	"context"
	"maps"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Served provides tools that come and go while a process lives: those of MCP servers (package mcptools). None has the
// name of a tool in Env.Tools.
type Served interface {
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

// ToolsNow returns the tools that are available at the moment.
func (l *Env) ToolsNow() tool.Set {
	if l.Served == nil {
		return l.Tools
	}
	all := l.Served.Tools()
	maps.Copy(all, l.Tools)
	return all
}

// AwaitTools returns the available tools after every server has been asked, or has had time to answer.
func (l *Env) AwaitTools(ctx context.Context) tool.Set {
	if l.Served != nil {
		l.Served.Await(ctx)
	}
	return l.ToolsNow()
}

// MeetTools refreshes the execution's tools, if its run's agent may call tools that come and go.
func (ex *Execution) MeetTools(ctx context.Context) {
	if its := ex.Agents.Get(ex.Run.Agent); ex.Served != nil && (its == nil || its.HasServed()) {
		ex.Tools = ex.AwaitTools(ctx)
	}
}

// RenewTool refreshes the definition of the action's tool from its server, so that cards, decisions and calls use the
// current one. A tool that only reads and needs no approval is not refreshed. The error means that the server cannot be
// reached.
func (ex *Execution) RenewTool(ctx context.Context, a *run.Action) error {
	t := ex.Tools[a.Tool]
	if ex.Served == nil || ex.Env.Tools[a.Tool] != nil || t != nil && !t.SideEffect && !a.RequiresApproval {
		return nil
	}
	err := ex.Served.Renew(ctx, a.Tool)
	if err == nil {
		ex.Tools = ex.ToolsNow()
	}
	return err
}
