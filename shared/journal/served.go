package journal

import (
	"context"
	"maps"

	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// Served are tools that come and go while a process lives: those of servers (package mcptools). None has the name of
// one of Env's tools.
type Served interface {
	// Tools returns those that are known to be there, and waits for nothing.
	Tools() tool.Set
	// Report says of each server which tools it has, and why others of it are not used.
	Report() []tool.ServerTools
	// Await waits for the servers that were never asked, for a short while.
	Await(ctx context.Context)
	// Renew asks for the tool with the name anew. The error says that its server cannot be reached; it is nil for a
	// name that is none of theirs.
	Renew(ctx context.Context, name string) error
}

// ToolsNow returns the tools that there are at the moment.
func (l *Env) ToolsNow() tool.Set {
	if l.Served == nil {
		return l.Tools
	}
	all := l.Served.Tools()
	maps.Copy(all, l.Tools)
	return all
}

// AwaitTools returns the tools when the servers that were never asked have been, or have had the time to answer.
func (l *Env) AwaitTools(ctx context.Context) tool.Set {
	if l.Served != nil {
		l.Served.Await(ctx)
	}
	return l.ToolsNow()
}

// MeetTools has the execution know the tools that there are at the moment, if its run's agent may call such as come and
// go.
func MeetTools(ctx context.Context, ex *Execution) {
	if its := ex.Agents.Get(ex.Run.Agent); ex.Served != nil && (its == nil || its.HasServed()) {
		ex.Tools = ex.AwaitTools(ctx)
	}
}

// RenewTool has the execution know the tool of the action as its server says that it is now: what is shown, decided on
// or carried out is not judged by what was said before. A tool that only reads and asks nobody is taken as it is
// known. The error says that the server cannot be reached.
func RenewTool(ctx context.Context, ex *Execution, a *run.Action) error {
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
