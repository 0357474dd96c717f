package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// agentView is an agent in the response of GET /agents.
type agentView struct {
	Name                  string
	Examples              []string
	Page, Terminal, Plans bool
}

// TestExamples tries each example of each agent. An agent that does not understand a wish lists its examples, one a
// line, because the console and the widget turn these lines into buttons.
func TestExamples(t *testing.T) {
	p := newTab(t)
	var all struct{ Agents []agentView }
	p.call(http.MethodGet, "/api/agent/agents", nil, &all)
	tried := 0
	for _, a := range all.Agents {
		for _, example := range a.Examples {
			tried++
			if words := p.try(a, example); strings.Contains(words, "did nothing") ||
				strings.Contains(words, "does not understand") {
				t.Errorf("%s answers %q with %q", a.Name, example, words)
			}
		}
		want := "I did nothing about it. I'm Countersign's offline demo model, not Gemini. Try one of these:\n- " +
			strings.Join(a.Examples[:min(3, len(a.Examples))], "\n- ")
		switch {
		case len(a.Examples) == 0:
			continue
		case a.Plans: // the plan has a question
			want = "The demo model does not understand this wish"
		}
		if words := p.try(a, "write a poem"); !strings.Contains(words, want) {
			t.Errorf("%s answers the wish for a poem with %q", a.Name, words)
		}
	}
	if tried < 15 {
		t.Errorf("%d examples were tried", tried)
	}
}

// try sends an agent a prompt, rejects the actions that it requests, and returns its answer.
func (p *tab) try(a agentView, prompt string) string {
	p.t.Helper()
	switch {
	case a.Plans:
		plan := p.plans("", map[string]any{"prompt": prompt, "repoUrl": p.base + githubPath + "/demo/site",
			"deadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
		return strings.Join(plan.Questions, " ")
	case a.Page:
		return p.say(prompt, func(c callView) {
			var over struct{}
			p.call(http.MethodPost, "/api/agent/approvals/resolve", map[string]any{"approvalId": c.Approval.ApprovalID,
				"argsHash": c.Approval.ArgsHash, "decision": "reject"}, &over)
		})
	case a.Terminal:
		_, words := p.task(p.terminal(), prompt, no)
		return words
	}
	var run struct {
		Status, Summary string
		Approvals       []struct{ ApprovalID, ArgsHash string }
	}
	p.call(http.MethodPost, "/api/agent/run", map[string]any{"agent": a.Name, "prompt": prompt}, &run)
	if run.Status != "completed" && len(run.Approvals) == 0 {
		p.t.Errorf("%s, asked to %q: %+v", a.Name, prompt, run)
	}
	return run.Summary
}
