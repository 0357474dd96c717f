package app

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
	"github.com/countersign-run/countersign/shared/tools/memory"
	"github.com/countersign-run/countersign/shared/tools/web"
)

const persona = "You are Countersign, a careful assistant who writes e-mails, makes calendar events and looks into " +
	"the calendar for one user."

// openAgents returns the registry of agents: the built-in ones, and those that declare returns. Declared agents have
// the assistant's limits by default.
func openAgents(cfg config.Config, tools tool.Set, servers []mcpfile.Server, declare DeclaredAgents) (registry.Set,
	error) {
	limits := registry.Limits{ModelCalls: cfg.MaxModelCalls, Deadline: cfg.RunDeadline, ApprovalTTL: cfg.ApprovalTTL,
		MaxOpen: cfg.MaxOpenApprovals, MaxPerDay: cfg.MaxApprovalsPerDay}.Within(cfg.FunctionTimeout)
	assistant := assistantAgent(cfg, tools, servers, limits)
	page := pageAgent(cfg, tools, limits)
	builtIn := []registry.Agent{assistant, page, plannerAgent(cfg, limits)}
	if cfg.Terminal {
		builtIn = append(builtIn, terminalAgents(limits, cfg.MaxCommandsPerDay)...)
	}
	declared, err := declare(cfg, declarable(cfg, tools), servers, assistant, page)
	if err != nil {
		return nil, err
	}
	for i, a := range declared {
		if a.Page {
			declared[i].Instructions, declared[i].Present = chat.OnPage(a.Instructions, a.Of(tools)), chat.Present
		}
	}
	return registry.New(tools, builtIn, declared)
}

// assistantAgent returns the agent of runs that name no agent. It has the tools of all MCP servers, except those that
// an agent must name.
func assistantAgent(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
	limits registry.Limits) registry.Agent {
	examples := examplesOf(tools)
	assistant := registry.Agent{
		Name: run.Assistant,
		Description: "Writes e-mails and makes calendar events for its user, who approves each, and looks into their " +
			"calendar.",
		Examples: examples,
		Instructions: registry.WithRules(registry.WithExamples(registry.Text(cmp.Or(cfg.Persona,
			strings.TrimSpace(cfg.SystemPrompt+"\n\n"+persona))), examples)),
		Present:  registry.State.Here,
		Limits:   limits,
		History:  registry.HistoryWords,
		OnReject: registry.OnReject(cfg.RejectOutcome),
	}
	if named := slices.Concat(commandTools, docker.Names, web.Names, memory.Names, repositoryTools,
		everydayTools, givenByName(tools)); len(servers) > 0 || slices.ContainsFunc(named, knows(tools)) {
		assistant.Tools = without(tools, named)
	}
	for _, s := range servers {
		if !s.Named {
			assistant.Dynamic = append(assistant.Dynamic, s.Prefix()+"*")
		}
	}
	return assistant
}

// everydayTools are the tools for mail and calendar that an agent has only if its file names them, because each tool of
// an agent is part of every request to the model.
var everydayTools = []string{"calendar_event_update", "calendar_freebusy", "calendar_respond", "gmail_draft"}

// pageAgent returns the agent for web pages.
func pageAgent(cfg config.Config, tools tool.Set, limits registry.Limits) registry.Agent {
	limits.ModelCalls, limits.Contents = cfg.ChatMaxModelCalls, chat.MaxHistory
	actions := pageActions(tools)
	return registry.Agent{
		Name:         run.Page,
		Description:  "Answers in a web page, with the tools that the page brings and the actions of the site.",
		Instructions: chat.Instructions(cmp.Or(cfg.Persona, cfg.SystemPrompt), actions),
		Present:      chat.Present,
		Tools:        append([]string{}, actions.Names()...),
		Limits:       limits,
		History:      registry.HistoryNone, // the page sends its own history
		OnReject:     registry.OnReject(cfg.RejectOutcome),
		Page:         true,
	}
}

// declarable returns the tools that an agent in a file can have. On Cloud Run, the function that advances runs of such
// agents does not link the tools for commands and containers. A program on one machine links both.
func declarable(cfg config.Config, tools tool.Set) tool.Set {
	others := maps.Clone(tools)
	maps.DeleteFunc(others, func(name string, _ *tool.Tool) bool {
		return slices.Contains(repositoryTools, name) ||
			cfg.OnCloudRun && (slices.Contains(commandTools, name) || slices.Contains(docker.Names, name))
	})
	return others
}

// examplesOf returns example requests for which the assistant has the tools.
func examplesOf(tools tool.Set) (out []string) {
	for _, e := range [][2]string{
		{"gmail_send", "email ana@example.com that the demo is at ten"},
		{"calendar_event_create", "schedule lunch with ana@example.com tomorrow at noon"},
		{"calendar_events_list", "what is on tomorrow?"},
	} {
		if tools[e[0]] != nil {
			out = append(out, e[1])
		}
	}
	return out
}

// givenByName returns the names of all tools that an agent has only if its file names them.
func givenByName(tools tool.Set) (names []string) {
	for name, t := range tools {
		if t.Named {
			names = append(names, name)
		}
	}
	return names
}

// pageActions returns the declared actions that the built-in page agent has.
func pageActions(tools tool.Set) tool.Set {
	actions := tool.Set{}
	for name, t := range tools {
		if strings.HasPrefix(name, chat.ActionPrefix) && !t.UserOnly && !t.Named {
			actions[name] = t
		}
	}
	return actions
}

// knows returns a function that reports whether the tools include a name.
func knows(tools tool.Set) func(name string) bool {
	return func(name string) bool { return tools[name] != nil }
}
