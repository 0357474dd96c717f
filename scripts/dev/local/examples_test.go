package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// agentView is an agent as GET /agents has it.
type agentView struct {
	Name                  string
	Examples              []string
	Page, Terminal, Plans bool
}

// TestTheExamplesWork has each agent's examples be understood, and be named where a wish is not, as lines of a list:
// there the console and the widget make buttons of them.
func TestTheExamplesWork(t *testing.T) {
	p := newTab(t)
	var all struct{ Agents []agentView }
	p.call(http.MethodGet, "/api/agent/agents", nil, &all)
	tried := 0
	for _, a := range all.Agents {
		for _, example := range a.Examples {
			tried++
			if words := p.try(a, example); strings.Contains(words, "did nothing") ||
				strings.Contains(words, "does not understand") {
				t.Errorf("%s, asked to %q, says %q", a.Name, example, words)
			}
		}
		want := "I did nothing about it. I'm Countersign's offline demo model, not Gemini. Try one of these:\n- " +
			strings.Join(a.Examples[:min(3, len(a.Examples))], "\n- ")
		switch {
		case len(a.Examples) == 0:
			continue
		case a.Plans: // which asks, in a plan
			want = "The demo model does not understand this wish"
		}
		if words := p.try(a, "write a poem"); !strings.Contains(words, want) {
			t.Errorf("%s, asked for a poem, says %q", a.Name, words)
		}
	}
	if tried < 15 {
		t.Errorf("%d examples were tried", tried)
	}
}

// try has an agent do something, rejects what it asks for, and returns its words.
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
