package plan_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

const repo = plan.Repo("https://github.com/acme/web")

var (
	now      = time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)
	deadline = now.Add(72 * time.Hour)
)

type issueIn struct {
	Owner  string   `json:"owner"`
	Repo   string   `json:"repo"`
	Title  string   `json:"title"`
	Labels []string `json:"labels,omitempty"`
}

// issueTarget holds the pinned arguments of an issue.
type issueTarget struct {
	Owner  string   `json:"owner"`
	Repo   string   `json:"repo"`
	Labels []string `json:"labels,omitempty"`
}

type pathIn struct {
	Path string `json:"path"`
}

type textOut struct {
	Text string `json:"text"`
}

func execute[In any](context.Context, tool.Call, In) (textOut, error) { return textOut{}, nil }

// theTools returns five tools: two that read, one with an effect and pinned arguments, one that acts in a container,
// and one without pinned arguments.
func theTools() tool.Set {
	set := tool.Set{}
	for _, t := range []*tool.Tool{
		tool.Define(tool.Def[pathIn, textOut]{Name: "github.readFile", Description: "Reads.",
			Execute: execute[pathIn]}),
		tool.Define(tool.Def[pathIn, textOut]{Name: "github.waitForChecks", Description: "Waits.",
			Execute: execute[pathIn]}),
		tool.Define(tool.Def[issueIn, textOut]{Name: "github.createIssue", Description: "Opens an issue.",
			SideEffect: true, Preview: func(issueIn) tool.Preview { return tool.Preview{Title: "Issue"} },
			Pinned: func(in issueIn) any {
				labels := slices.Compact(slices.Sorted(slices.Values(in.Labels)))
				return issueTarget{in.Owner, in.Repo, labels}
			},
			Execute: execute[issueIn]}),
		tool.Define(tool.Def[pathIn, textOut]{Name: "docker.executeScript", Description: "Runs.",
			SideEffect: true, Contained: true,
			Preview: func(pathIn) tool.Preview { return tool.Preview{Title: "Script"} },
			Pinned:  func(in pathIn) any { return in }, Execute: execute[pathIn]}),
		tool.Define(tool.Def[pathIn, textOut]{Name: "run_shell_command", Description: "Runs.",
			SideEffect: true, Preview: func(pathIn) tool.Preview { return tool.Preview{Title: "Command"} },
			Execute: execute[pathIn]}),
	} {
		set[t.Name] = t
	}
	return set
}

var tools = theTools()

func bind() plan.Bind {
	return plan.Bind{Repo: repo, Deadline: deadline, Now: now, Tools: tools}
}

func task(title string, more ...func(*plan.Task)) plan.Task {
	t := plan.Task{Title: title, Goal: "Reach " + title, Tools: []string{"github.readFile"}}
	for _, m := range more {
		m(&t)
	}
	return t
}

func opens(t *plan.Task) { t.Effects = []string{"github.createIssue"} }

func grant(max int) plan.Grant {
	return plan.Grant{Tool: "github.createIssue", Target: json.RawMessage(`{"repo":"web","owner":"acme"}`),
		MaxCalls: max}
}

// normal returns the plan in its normal form.
func normal(t rapid.TB, b plan.Bind, p plan.Plan) plan.Plan {
	t.Helper()
	p, err := b.Normalize(p)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// canonical returns the plan's canonical JSON.
func canonical(t rapid.TB, p plan.Plan) json.RawMessage {
	t.Helper()
	b, err := p.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func apply(t rapid.TB, s *plan.Session, events ...plan.Event) {
	t.Helper()
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

// proposed returns the event of a waiting plan. n is part of its approval ID and its hash.
func proposed(t rapid.TB, p plan.Plan, n string) plan.Event {
	t.Helper()
	return plan.Event{Proposed: &plan.Proposed{Plan: canonical(t, p), Hash: "h" + n, ActionID: "a" + n,
		ApprovalID: "p" + n}}
}

func confirmed(n string) plan.Event {
	return plan.Event{Confirmed: &plan.Confirmed{ApprovalID: "p" + n, Hash: "h" + n}}
}

// executing returns a session that executes the plan and has started its first task.
func executing(t *testing.T, p plan.Plan) *plan.Session {
	t.Helper()
	s := plan.NewSession()
	apply(t, s, proposed(t, normal(t, bind(), p), "1"), confirmed("1"))
	apply(t, s, s.Begin()...)
	return s
}
