package app

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/mcpfile"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/web"
)

const persona = "You are Countersign, a careful assistant who writes e-mails, makes calendar events and looks into " +
	"the calendar for one user."

// openAgents makes the registry of agents: the assistant and the agent of pages, as they are configured, and those that
// declare returns. Their default limits are the assistant's. The assistant has the tools of all servers except those
// that an agent must name.
func openAgents(cfg config.Config, tools tool.Set, servers []mcpfile.Server, declare DeclaredAgents) (agents.Set,
	error) {
	limits := agents.Limits{ModelCalls: cfg.MaxModelCalls, Deadline: cfg.RunDeadline, ApprovalTTL: cfg.ApprovalTTL,
		MaxOpen: cfg.MaxOpenApprovals, MaxPerDay: cfg.MaxApprovalsPerDay}.Within(cfg.FunctionTimeout)
	examples := examplesOf(tools)
	assistant := agents.Agent{
		Name: run.Assistant,
		Description: "Writes e-mails and makes calendar events for its user, who approves each, and looks into their " +
			"calendar.",
		Examples: examples,
		Instructions: agents.WithRules(agents.WithExamples(agents.Text(cmp.Or(cfg.Persona,
			strings.TrimSpace(cfg.SystemPrompt+"\n\n"+persona))), examples)),
		Limits:   limits,
		History:  agents.HistoryWords,
		OnReject: agents.OnReject(cfg.RejectOutcome),
	}
	if named := slices.Concat(commandTools, docker.Names, web.Names, repositoryTools,
		givenByName(tools)); len(servers) > 0 || slices.ContainsFunc(named, knows(tools)) {
		assistant.Tools = without(tools, named)
	}
	for _, s := range servers {
		if !s.Named {
			assistant.Served = append(assistant.Served, s.Prefix()+"*")
		}
	}
	actions := pageActions(tools)
	page := agents.Agent{
		Name:         run.Page,
		Description:  "Answers in a web page, with the tools that the page brings and the actions of the site.",
		Instructions: chat.Instructions(cmp.Or(cfg.Persona, cfg.SystemPrompt), actions),
		Tools:        append([]string{}, actions.Names()...),
		Limits:       limits,
		History:      agents.HistoryNone, // its page sends it
		OnReject:     assistant.OnReject,
		Page:         true,
	}
	page.Limits.ModelCalls, page.Limits.Contents = cfg.ChatMaxModelCalls, chat.MaxHistory
	builtIn := []agents.Agent{assistant, page, plannerAgent(cfg, limits)}
	if cfg.Terminal {
		builtIn = append(builtIn, terminalAgents(limits, cfg.MaxCommandsPerDay)...)
	}
	others := maps.Clone(tools)
	maps.DeleteFunc(others, func(name string, _ *tool.Tool) bool {
		return slices.Contains(repositoryTools, name) || cfg.OnCloudRun && slices.Contains(atHome, name)
	})
	declared, err := declare(cfg, others, servers, assistant, page)
	if err != nil {
		return nil, err
	}
	for i, a := range declared {
		if a.Page {
			declared[i].Instructions = chat.OnPage(a.Instructions, a.Of(tools))
		}
	}
	return agents.New(tools, builtIn, declared)
}

// examplesOf returns requests to the assistant for which it has the tools.
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

// atHome are the tools of agents with a home of their own. Deployed, the function that moves the operator's agents does
// not link what carries them out; a program on one machine is one process, and does.
var atHome = slices.Concat(commandTools, docker.Names)

// givenByName returns the names of the tools that only an agent has that is given them.
func givenByName(tools tool.Set) (names []string) {
	for name, t := range tools {
		if t.Named {
			names = append(names, name)
		}
	}
	return names
}

// pageActions returns the tools that are declared actions, and that a page has whose agent is none of the operator's.
func pageActions(tools tool.Set) tool.Set {
	actions := tool.Set{}
	for name, t := range tools {
		if strings.HasPrefix(name, chat.ActionPrefix) && !t.UserOnly && !t.Named {
			actions[name] = t
		}
	}
	return actions
}

// knows returns whether there is a tool with the name.
func knows(tools tool.Set) func(name string) bool {
	return func(name string) bool { return tools[name] != nil }
}
