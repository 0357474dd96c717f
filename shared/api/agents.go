package api

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
)

// agentView describes an agent to a client that offers a choice of agents.
type agentView struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Examples    []string `json:"examples,omitempty"` // requests to try, one line each
	// serves web pages, which bring their own tools; takes no run
	Page     bool `json:"page,omitempty"`
	Terminal bool `json:"terminal,omitempty"` // works on a terminal, which each request must name
	// works in sessions, which start at /plans; takes no run
	Plans bool `json:"plans,omitempty"`
}

// serverView is an MCP server that supplies tools to agents.
type serverView struct {
	Name    string       `json:"name"`
	Tools   []string     `json:"tools"`
	Unused  []unusedView `json:"unused,omitempty"`
	Problem string       `json:"problem,omitempty"` // why the last request for its tools failed
}

// unusedView is a tool of a server that no agent gets.
type unusedView struct {
	Tool   string `json:"tool"` // the server's name for the tool, quoted
	Reason string `json:"reason"`
}

func getAgents(r *request) (any, error) {
	l := r.api.Loop
	out := struct {
		ok
		Agents  []agentView  `json:"agents"`
		Servers []serverView `json:"servers,omitempty"`
	}{ok{true}, []agentView{}, servers(r.Context(), l.Dynamic)}
	for _, name := range l.Agents.Names() {
		a := l.Agents[name]
		v := agentView{Name: name, Description: a.Description, Tools: []string{}, Examples: a.Examples, Page: a.Page,
			Terminal: a.OnTerminal, Plans: a.Plans}
		for _, spec := range a.Specs(l.Tools) {
			v.Tools = append(v.Tools, spec.Name)
		}
		v.Tools = append(v.Tools, a.Dynamic...)
		out.Agents = append(out.Agents, v)
	}
	return out, nil
}

// servers returns the MCP servers. It waits until each has listed its tools, or until their time to answer is over.
func servers(ctx context.Context, all toolbox.Dynamic) (out []serverView) {
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

// chosen returns the name of the agent that a request asks for, or "" if it names none. An unknown agent is an error,
// and so is an agent for web pages. In a thread, the error tells the user how to continue, because the agent was chosen
// when the thread began.
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

// agentName validates and returns the agent that a request names, or def if it names none.
func agentName(name *string, def string) (string, error) {
	switch {
	case name == nil:
		return def, nil
	case !registry.ValidName(*name):
		return "", fault.Invalid("agent", "invalid agent name")
	}
	return *name, nil
}
