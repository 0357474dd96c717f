// Package agents is the part of the functions that know the operator's declared agents: to begin their runs, to move
// them, and to list the agents.
package agents

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/agents/files"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tool"
)

// Part has the agents of the folder AGENTS.
var Part = app.Part{Link: func(c *app.Clients) { c.Agents = declared(false) }}

// Ending is the part of a function that ends runs and has no tools.
var Ending = app.Part{Link: func(c *app.Clients) { c.Agents = declared(true) }}

func declared(noTools bool) app.DeclaredAgents {
	return func(cfg config.Config, tools tool.Set, assistant agents.Agent) ([]agents.Agent, error) {
		if cfg.Agents == "" {
			return nil, nil
		}
		all, err := files.Load(cfg.Agents, files.Options{Tools: tools, NoTools: noTools, Limits: assistant.Limits,
			OnReject: assistant.OnReject})
		if err != nil {
			return nil, fmt.Errorf("AGENTS: %w", err)
		}
		return all, nil
	}
}
