package registry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func named(name string, userOnly bool) *tool.Tool {
	return &tool.Tool{Spec: tool.Spec{Name: name, UserOnly: userOnly}}
}

var tools = tool.NewSet(named("book", false), named("cancel", true), named("look", false))

func concierge(change func(*registry.Agent)) registry.Agent {
	a := registry.Agent{Name: "concierge", Instructions: registry.Text("Book."), Tools: []string{"book"},
		Limits:  registry.Limits{ModelCalls: 3, Deadline: time.Hour, ApprovalTTL: time.Hour}.Within(time.Minute),
		History: registry.HistoryWords, OnReject: registry.RejectCompletes}
	if change != nil {
		change(&a)
	}
	return a
}

// plans returns a change that makes an agent a planner, and then applies another change.
func plans(change func(*registry.Agent)) func(*registry.Agent) {
	return func(a *registry.Agent) {
		a.Plans, a.Order, a.OnReject = true, registry.Strict, registry.RejectContinues
		change(a)
	}
}

func TestGet(t *testing.T) {
	assistant := concierge(func(a *registry.Agent) { a.Name, a.Tools = run.Assistant, nil })
	s, err := registry.New(tools, []registry.Agent{assistant}, []registry.Agent{concierge(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if s.Get("") != s["assistant"] || s.Get("concierge") == nil || s.Get("nobody") != nil {
		t.Errorf("%v", s.Names())
	}
	if got := s.Get("").Specs(tools); len(got) != 2 || got[0].Name != "book" || got[1].Name != "look" {
		t.Errorf("tools of the assistant: %v", got)
	}
	if got := s.Get("concierge").Specs(tools); len(got) != 1 || got[0].Name != "book" {
		t.Errorf("tools of the concierge: %v", got)
	}
	none := concierge(func(a *registry.Agent) { a.Tools = []string{} })
	if none.Has("book") || len(none.Specs(tools)) != 0 {
		t.Error("an agent with an empty list of tools has tools")
	}
	if s.Limits("concierge").ModelCalls != 3 || s.Limits("nobody").ToolTimeout <= 0 {
		t.Errorf("limits: %+v", s.Limits("nobody"))
	}
}

// TestWrong checks the values that each setting permits, and that all errors are reported at once.
func TestWrong(t *testing.T) {
	hot := float32(2.5)
	cases := map[string]func(*registry.Agent){
		"x.name":                          func(a *registry.Agent) { a.Name = "Concierge" },
		".name":                           func(a *registry.Agent) { a.Name = "" },
		"-a.name":                         func(a *registry.Agent) { a.Name = "-a" },
		"assistant.name":                  func(a *registry.Agent) { a.Name = "assistant" },
		"page.name":                       func(a *registry.Agent) { a.Name = "page" },
		"concierge.description":           func(a *registry.Agent) { a.Description = strings.Repeat("x", 1025) },
		"concierge.examples":              func(a *registry.Agent) { a.Examples = strings.Fields("a b c d e f g") },
		"concierge.examples ":             func(a *registry.Agent) { a.Examples = []string{"a\nb"} },
		"concierge.examples  ":            func(a *registry.Agent) { a.Examples = []string{strings.Repeat("a", 201)} },
		"concierge.examples   ":           func(a *registry.Agent) { a.Examples = []string{"a", "a"} },
		"concierge.instructions":          func(a *registry.Agent) { a.Instructions = nil },
		"concierge.tools":                 func(a *registry.Agent) { a.Tools = []string{"fly"} },
		"concierge.tools ":                func(a *registry.Agent) { a.Tools = []string{"book", "book"} },
		"concierge.ask":                   func(a *registry.Agent) { a.Ask = []string{"look"} },
		"concierge.model.name":            func(a *registry.Agent) { a.Model.Name = "a model" },
		"concierge.model.temperature":     func(a *registry.Agent) { a.Model.Temperature = &hot },
		"concierge.model.maxOutputTokens": func(a *registry.Agent) { a.Model.MaxOutputTokens = -1 },
		"concierge.model.calling":         func(a *registry.Agent) { a.Model.Calling = "NONE" },
		"concierge.model.allowed":         func(a *registry.Agent) { a.Model.Allowed = []string{"book"} },
		"concierge.model.allowed ": func(a *registry.Agent) {
			a.Model.Calling, a.Model.Allowed = model.CallingAny, []string{"look"}
		},
		"concierge.model.forced": func(a *registry.Agent) { a.Model.Forced = "look" },
		"concierge.model.forced ": func(a *registry.Agent) {
			a.Tools, a.Model.Forced = nil, "cancel" // only its user can call this tool
		},
		"concierge.limits.modelCalls":     func(a *registry.Agent) { a.Limits.ModelCalls = 0 },
		"concierge.limits.modelCalls ":    func(a *registry.Agent) { a.Limits.ModelCalls = 51 },
		"concierge.limits.contents":       func(a *registry.Agent) { a.Limits.Contents = -1 },
		"concierge.limits.deadline":       func(a *registry.Agent) { a.Limits.Deadline = 0 },
		"concierge.limits.approvalTTL":    func(a *registry.Agent) { a.Limits.ApprovalTTL = -time.Hour },
		"concierge.limits.modelTimeout":   func(a *registry.Agent) { a.Limits.ModelTimeout = time.Hour },
		"concierge.limits.toolTimeout":    func(a *registry.Agent) { a.Limits.ToolTimeout = 0 },
		"concierge.limits.maxOpen":        func(a *registry.Agent) { a.Limits.MaxOpen = -1 },
		"concierge.limits.maxPerDay":      func(a *registry.Agent) { a.Limits.MaxPerDay = 1 << 20 },
		"concierge.limits.budget.tokens":  func(a *registry.Agent) { a.Limits.Budget.Tokens = -1 },
		"concierge.limits.budget.effects": func(a *registry.Agent) { a.Limits.Budget.Effects = -1 },
		"concierge.limits.budget.money":   func(a *registry.Agent) { a.Limits.Budget.Money = -1 },
		"concierge.limits.budget.prices":  func(a *registry.Agent) { a.Limits.Budget.Money = 1 },
		"concierge.limits.budget.prices ": func(a *registry.Agent) {
			a.Model.Name, a.Limits.Budget = "a", run.Budget{Money: 1, Prices: map[string]run.Price{"b": {}}}
		},
		"concierge.limits.budget.prices  ": func(a *registry.Agent) {
			a.Limits.Budget = run.Budget{Prices: map[string]run.Price{"": {Output: -1}}}
		},
		"concierge.home":     func(a *registry.Agent) { a.Worker = "Resume Concierge" },
		"concierge.history":  func(a *registry.Agent) { a.History = "" },
		"concierge.order":    func(a *registry.Agent) { a.Order = "alphabetical" },
		"concierge.effects":  func(a *registry.Agent) { a.Effects = "some" },
		"concierge.onReject": func(a *registry.Agent) { a.OnReject = "maybe" },

		"concierge.effects ":       plans(func(a *registry.Agent) { a.Effects = policy.AutoApprove }),
		"concierge.onReject ":      plans(func(a *registry.Agent) { a.OnReject = registry.RejectFails }),
		"concierge.order ":         plans(func(a *registry.Agent) { a.Order = registry.Sequential }),
		"concierge.history ":       plans(func(a *registry.Agent) { a.History = registry.HistoryVerbatim }),
		"concierge.model.calling ": plans(func(a *registry.Agent) { a.Model.Forced = "book" }),
		"concierge.plans":          plans(func(a *registry.Agent) { a.Page = true }),
		"concierge.plans ":         plans(func(a *registry.Agent) { a.OnTerminal = true }),
	}
	for name, change := range cases {
		bad := concierge(change)
		field := strings.TrimSpace(strings.Replace(name, "x.name", "Concierge.name", 1))
		_, err := registry.New(tools, nil, []registry.Agent{bad})
		if !fault.Is(err, fault.Validation, "invalid") || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := registry.New(tools, nil, []registry.Agent{concierge(plans(func(*registry.Agent) {}))}); err != nil {
		t.Errorf("a valid agent that plans: %v", err)
	}
	_, err := registry.New(tools, nil, []registry.Agent{concierge(nil), concierge(nil),
		concierge(func(a *registry.Agent) { a.Name, a.History, a.Limits.ModelCalls = "other", "", 99 })})
	for _, field := range []string{"concierge.name", "other.history", "other.limits.modelCalls"} {
		if err == nil || !strings.Contains(err.Error(), "("+field+")") {
			t.Errorf("no error for %s: %v", field, err)
		}
	}
}

// TestWorkerOfEachAgent checks that each agent has one worker, and that a function that is no agent's worker advances
// the same runs as resume.
func TestWorkerOfEachAgent(t *testing.T) {
	assistant := concierge(func(a *registry.Agent) { a.Name, a.Tools = run.Assistant, nil })
	heavy := concierge(func(a *registry.Agent) {
		a.Name, a.Worker, a.Tools, a.Model.Forced = "terminal", "resume-terminal", []string{"shell"}, "shell"
	})
	s, err := registry.New(tools, []registry.Agent{assistant, heavy}, []registry.Agent{concierge(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for name, home := range map[string]string{"": "resume", "assistant": "resume", "concierge": "resume",
		"nobody": "resume", "terminal": "resume-terminal"} {
		if got := s.Worker(name); got != home {
			t.Errorf("Home(%q) = %s, want %s", name, got, home)
		}
		for function, moves := range map[string]bool{"resume": home == "resume", "run": home == "resume",
			"resume-terminal": home == "resume-terminal"} {
			if got := s.LivesIn(function, name); got != moves {
				t.Errorf("LivesIn(%s, %q) = %t", function, name, got)
			}
		}
	}
	assistant.Worker = "resume-assistant"
	if _, err := registry.New(tools, []registry.Agent{assistant}, nil); err == nil ||
		!strings.Contains(err.Error(), "(assistant.home)") {
		t.Errorf("another home for the assistant: %v", err)
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "assistant", "a-1", "A", "", "a/b", strings.Repeat("a", 32), "ä"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := registry.New(tools, nil, []registry.Agent{concierge(func(a *registry.Agent) { a.Name = name })})
		if err != nil {
			return
		}
		plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if !plain || len(name) == 0 || len(name) > 32 || s.Get(name) == nil ||
			slices.Contains([]string{run.Assistant, run.Page}, name) {
			t.Errorf("the name %q was accepted", name)
		}
	})
}

// TestWithRules checks that the assistant gets its rules, and what it reads of its user's time, language and
// preferences.
func TestWithRules(t *testing.T) {
	s := registry.State{CreatedAt: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC),
		Locale: run.Locale{TimeZone: "Europe/Berlin", Language: "de"}, Preferences: "They work."}
	got, err := registry.WithRules(registry.Text(" You are X.\n"))(t.Context(), s)
	if err != nil || !strings.HasPrefix(got, "You are X.\n\nRules:\n- Use a tool only") ||
		strings.Contains(got, "The run began") {
		t.Errorf("%v\n%s", err, got)
	}
	here := s.Here()
	if !strings.HasPrefix(here, "The run began at Monday 2027-03-01 09:00 UTC.\nThe user's time zone is Europe/") ||
		!strings.HasSuffix(here, "\nThe user's language is de (BCP 47), unless they write in another.\nThey work.") {
		t.Error(here)
	}
	failing := func(context.Context, registry.State) (string, error) { return "", fmt.Errorf("no") }
	if _, err := registry.WithRules(failing)(t.Context(), s); err == nil {
		t.Error("the error of the first instructions is lost")
	}
}

// TestOrigins checks which pages an agent with origins answers, and which pages can use the tools of page agents.
func TestOrigins(t *testing.T) {
	const shop, other = "https://shop.example", "https://other.example"
	bound := func(name string, tools []string, origins ...string) *registry.Agent {
		return &registry.Agent{Name: name, Page: true, Tools: tools, Origins: origins}
	}
	s := registry.Set{"shop": bound("shop", []string{"rate", "look"}, shop), "docs": bound("docs", []string{"look"}),
		"desk": {Name: "desk", Tools: []string{"rate"}}, "stock": bound("stock", []string{"count"}, other, shop)}
	for _, c := range []struct {
		agent, tool, origin string
		answers, admits     bool
	}{
		{"shop", "rate", shop, true, true}, {"shop", "rate", other, false, false},
		{"shop", "rate", shop + ":8443", false, false}, {"shop", "rate", "null", false, false},
		{"shop", "rate", "", true, true}, // a program, not a page
		{"docs", "look", other, true, true}, {"docs", "look", shop, true, true},
		{"stock", "count", other, true, true}, {"stock", "count", "https://third.example", false, false},
		{"desk", "nobody's", other, true, true},
	} {
		if got := s[c.agent].Answers(c.origin); got != c.answers {
			t.Errorf("%s: Answers(%q) = %v", c.agent, c.origin, got)
		}
		if got := s.Admits(c.origin, c.tool); got != c.admits {
			t.Errorf("%s: Admits(%q) = %v", c.tool, c.origin, got)
		}
	}
}
