// Package agents is the part for the operator's declared agents: to start their runs, advance them, and list the
// agents.
package agents

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/config/agentfiles"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
)

// Part has the agents in the folder AGENTS.
var Part = app.Part{Name: "agents", Agents: declared(agentfiles.Options{})}

// Pages is the part for a function that serves web pages and lacks the tools of other agents.
var Pages = app.Part{Name: "agents", Agents: declared(agentfiles.Options{PagesAlone: true})}

// Ending is the part for a function that only ends runs and has no tools.
var Ending = app.Part{Name: "agents", Agents: declared(agentfiles.Options{NoTools: true})}

func declared(o agentfiles.Options) app.DeclaredAgents {
	return func(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
		assistant, page registry.Agent) ([]registry.Agent, error) {
		if cfg.Agents == "" {
			return nil, nil
		}
		o := o
		o.Tools, o.Actions = tools, page.Of(tools)
		for name, t := range tools {
			if t.Named && strings.HasPrefix(name, chat.ActionPrefix) {
				o.Actions[name] = t
			}
		}
		for _, s := range servers {
			o.Servers = append(o.Servers, s.Prefix())
		}
		o.Limits, o.PageLimits, o.OnReject = assistant.Limits, page.Limits, assistant.OnReject
		all, err := agentfiles.Load(cfg.Agents, o)
		if err != nil {
			return nil, fmt.Errorf("AGENTS: %w", err)
		}
		return all, nil
	}
}
