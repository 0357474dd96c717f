package api

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// agentView is an agent as those who choose among agents see it.
type agentView struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Examples    []string `json:"examples,omitempty"` // requests to try, in a line each
	Page        bool     `json:"page,omitempty"`     // it answers web pages, which bring more tools, and takes no run
	Terminal    bool     `json:"terminal,omitempty"` // it works on a terminal, which each request for one names
	Plans       bool     `json:"plans,omitempty"`    // it works in sessions, which begin at /plans, and takes no run
}

// serverView is a server of MCP, whose tools the agents' x_* stand for.
type serverView struct {
	Name    string       `json:"name"`
	Tools   []string     `json:"tools"`
	Unused  []unusedView `json:"unused,omitempty"`
	Problem string       `json:"problem,omitempty"` // why it could not be asked when it was last asked
}

// unusedView is a tool of a server that no agent is offered.
type unusedView struct {
	Tool   string `json:"tool"` // the server's name for it, in quotes
	Reason string `json:"reason"`
}

func getAgents(r *request) (any, error) {
	l := r.api.Loop
	out := struct {
		ok
		Agents  []agentView  `json:"agents"`
		Servers []serverView `json:"servers,omitempty"`
	}{ok{true}, []agentView{}, servers(r.Context(), l.Served)}
	for _, name := range l.Agents.Names() {
		a := l.Agents[name]
		v := agentView{Name: name, Description: a.Description, Tools: []string{}, Examples: a.Examples, Page: a.Page,
			Terminal: a.OnTerminal, Plans: a.Plans}
		for _, spec := range a.Specs(l.Tools) {
			v.Tools = append(v.Tools, spec.Name)
		}
		v.Tools = append(v.Tools, a.Served...)
		out.Agents = append(out.Agents, v)
	}
	return out, nil
}

// servers returns the servers of MCP, once they were asked for their tools or had the time to answer.
func servers(ctx context.Context, all journal.Served) (out []serverView) {
	if all == nil {
		return nil
	}
	all.Await(ctx)
	for _, s := range all.Report() {
		v := serverView{Name: s.Server, Tools: s.Tools, Problem: s.Problem}
		for _, u := range s.Unused {
			v.Unused = append(v.Unused, unusedView(u))
		}
		out = append(out, v)
	}
	return out
}

// chosen returns the name of the agent that a request asks for, the empty one where it names none, or the error of one
// that is not there. An agent of web pages is not there for it. In a thread the error says what its user can do,
// because whoever goes on with a conversation has not chosen its agent just now.
func chosen(all registry.Set, name *string, inThread bool) (string, error) {
	asked, err := agentName(name, "")
	if name == nil || err != nil {
		return "", err
	}
	switch a := all[asked]; {
	case a == nil && inThread:
		return "", registry.Gone(asked)
	case a == nil || a.Page:
		return "", fault.NotFound()
	}
	return asked, nil
}

// agentName returns the name that a request has for the agent, or the default.
func agentName(name *string, def string) (string, error) {
	switch {
	case name == nil:
		return def, nil
	case !registry.ValidName(*name):
		return "", fault.Invalid("agent", "this is not the name of an agent")
	}
	return *name, nil
}
