// Package agents is the part of the functions that know the operator's declared agents: to begin their runs, to move
// them, and to list the agents.
package agents

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/agents/files"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/mcpfile"
	"github.com/countersign-run/countersign/shared/tool"
)

// Part has the agents of the folder AGENTS.
var Part = app.Part{Name: "agents", Agents: declared(files.Options{})}

// Pages is the part of a function that answers web pages and has no other agents' tools.
var Pages = app.Part{Name: "agents", Agents: declared(files.Options{PagesAlone: true})}

// Ending is the part of a function that ends runs and has no tools.
var Ending = app.Part{Name: "agents", Agents: declared(files.Options{NoTools: true})}

func declared(o files.Options) app.DeclaredAgents {
	return func(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
		assistant, page agents.Agent) ([]agents.Agent, error) {
		if cfg.Agents == "" {
			return nil, nil
		}
		o := o
		o.Tools, o.Actions = tools, page.Of(tools)
		for name, t := range tools {
			if t.Named {
				o.Actions[name] = t
			}
		}
		for _, s := range servers {
			o.Servers = append(o.Servers, s.Prefix())
		}
		o.Limits, o.PageLimits, o.OnReject = assistant.Limits, page.Limits, assistant.OnReject
		all, err := files.Load(cfg.Agents, o)
		if err != nil {
			return nil, fmt.Errorf("AGENTS: %w", err)
		}
		return all, nil
	}
}
