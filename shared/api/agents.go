package api

import (
	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/fault"
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

func getAgents(r *request) (any, error) {
	out := struct {
		ok
		Agents []agentView `json:"agents"`
	}{ok{true}, []agentView{}}
	l := r.api.Loop
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

// chosen returns the name of the agent that a request asks for, the empty one where it names none, or the error of one
// that is not there. An agent of web pages is not there for it. In a thread the error says what its user can do,
// because whoever goes on with a conversation has not chosen its agent just now.
func chosen(all agents.Set, name *string, inThread bool) (string, error) {
	asked, err := agentName(name, "")
	if name == nil || err != nil {
		return "", err
	}
	switch a := all[asked]; {
	case a == nil && inThread:
		return "", agents.Gone(asked)
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
	case !agents.ValidName(*name):
		return "", fault.Invalid("agent", "this is not the name of an agent")
	}
	return *name, nil
}
