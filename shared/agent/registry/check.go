package registry

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// reserved are the names of the built-in agents.
var reserved = []string{run.Assistant, run.Page, run.Terminal, run.TerminalChat, run.Planner}

var (
	validHome = lazyregexp.New(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`) // as a function of infra/functions.json
	validName = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	// a server's name ends at the first _ (mcpfile)
	validServed = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,31}_([A-Za-z0-9_.-]{1,61}|\*)$`)
	validModel  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/@-]{0,127}$`)
)

// ValidName reports whether an agent may have the name.
func ValidName(name string) bool { return validName.MatchString(name) }

// New returns the registry of the built-in agents and of those that are declared, over the tools of the deployment. Its
// error joins a ValidationError for each setting that is wrong, with the agent's name and the setting as its field.
func New(tools tool.Set, builtIn, declared []Agent) (Set, error) {
	s := Set{}
	var wrong []error
	for i, a := range slices.Concat(builtIn, declared) {
		c := checker{agent: a.Name, tools: tools}
		switch {
		case !ValidName(a.Name):
			c.fail("name", "a name is a small letter and up to 31 small letters, digits and hyphens")
		case i >= len(builtIn) && slices.Contains(reserved, a.Name):
			c.fail("name", "this is the name of a built-in agent")
		case s[a.Name] != nil:
			c.fail("name", "two agents have this name")
		}
		c.check(a)
		s[a.Name] = &a
		wrong = append(wrong, c.wrong...)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return s, nil
}

// checker gathers what is wrong with one agent.
type checker struct {
	agent string
	tools tool.Set
	wrong []error
}

func (c *checker) fail(field, format string, args ...any) {
	c.wrong = append(c.wrong, fault.Invalid(c.agent+"."+field, format, args...))
}

// needs fails unless ok.
func (c *checker) needs(ok bool, field, format string, args ...any) {
	if !ok {
		c.fail(field, format, args...)
	}
}

func (c *checker) check(a Agent) {
	c.needs(a.Home == "" || a.Name != run.Assistant && validHome.MatchString(a.Home), "home", "a function's name is "+
		"needed; the assistant lives in %s, because messages of the release before name no agent", DefaultHome)
	c.needs(len(a.Description) <= 1<<10, "description", "%d bytes; the limit is 1024", len(a.Description))
	c.examples(a)
	c.needs(a.Instructions != nil, "instructions", "instructions are needed")
	for i, name := range a.Tools {
		// the tools of an agent with a home of its own are there alone
		c.needs(c.tools[name] != nil || a.Home != "", "tools", "there is no tool %q", name)
		c.needs(!slices.Contains(a.Tools[:i], name), "tools", "%q stands there twice", name)
	}
	for i, name := range a.Served {
		c.needs(validServed.MatchString(name), "tools", "%q is no name of a server's tool", name)
		c.needs(!slices.Contains(a.Served[:i], name), "tools", "%q stands there twice", name)
	}
	for _, name := range a.Ask {
		c.needs(a.Has(name), "ask", "%q is none of the agent's tools", name)
	}
	c.model(a)
	c.limits(a)
	c.budget(a)
	c.needs(slices.Contains([]History{HistoryWords, HistoryNone, HistoryVerbatim}, a.History), "history",
		"words, none or verbatim, and not %q", string(a.History))
	z := a.Compression
	c.needs(z.Threshold >= 0 && z.Threshold <= 1, "compression.threshold", "0 to 1, and not %g", z.Threshold)
	c.needs(z.Window == 0 || z.Window >= 1000 && z.Window <= 1<<26, "compression.window",
		"1000 to %d tokens, or 0, and not %d", 1<<26, z.Window)
	c.needs(z.Threshold == 0 || z.Window > 0, "compression.threshold", "the model's window is needed for it")
	c.needs(z.Window == 0 || a.History == HistoryVerbatim, "compression", "it is for the history verbatim")
	c.needs(slices.Contains([]OnReject{RejectCompletes, RejectFails, RejectContinues}, a.OnReject), "onReject",
		"completed, failed or continue, and not %q", string(a.OnReject))
	c.needs(slices.Contains([]policy.Effects{policy.AskEffects, policy.AutoApprove, policy.NoEffects}, a.Effects),
		"effects", "auto_approve, none or nothing, and not %q", string(a.Effects))
	c.needs(slices.Contains([]Order{"", Independent, Sequential, Strict}, a.Order), "order",
		"independent, sequential or strict, and not %q", string(a.Order))
	if a.Plans {
		c.plans(a)
	}
}

// plans checks what sessions rest on: that nobody confirms a plan but its user, who may want another one, that a task's
// calls follow each other, and that each phase says itself what the model may call.
func (c *checker) plans(a Agent) {
	const why = "for an agent that plans this is "
	c.needs(a.Effects == policy.AskEffects, "effects", why+"empty, so that its user confirms each plan")
	c.needs(a.OnReject == RejectContinues, "onReject", why+"%s", string(RejectContinues))
	c.needs(a.Order == Strict, "order", why+"%s", string(Strict))
	c.needs(a.History != HistoryVerbatim, "history", why+"%s or %s", string(HistoryWords), string(HistoryNone))
	c.needs(a.Model.Calling == "" && a.Model.Forced == "", "model.calling", why+"empty, and so is model.forced")
	c.needs(!a.Page && !a.OnTerminal, "plans", "a session works neither in a page nor on a terminal")
}

// An agent has a few examples, each short enough for a button.
const (
	MaxExamples = 6
	MaxExample  = 200 // bytes
)

func (c *checker) examples(a Agent) {
	c.needs(len(a.Examples) <= MaxExamples, "examples", "%d; the limit is %d", len(a.Examples),
		MaxExamples)
	for i, e := range a.Examples {
		c.needs(e != "" && len(e) <= MaxExample && e == strings.Join(strings.Fields(e), " "), "examples",
			"%q is no request in one line of at most %d bytes", e, MaxExample)
		c.needs(!slices.Contains(a.Examples[:i], e), "examples", "%q stands there twice", e)
	}
}

func (c *checker) model(a Agent) {
	m := a.Model
	callable := func(name string) bool {
		t := c.tools[name]
		return (t == nil && a.Home != "" || t != nil && !t.UserOnly) && a.Has(name)
	}
	c.needs(m.Name == "" || validModel.MatchString(m.Name), "model.name", "%q is no name of a model", m.Name)
	c.needs(m.Temperature == nil || *m.Temperature >= 0 && *m.Temperature <= 2, "model.temperature", "0 to 2")
	c.needs(m.MaxOutputTokens >= 0 && m.MaxOutputTokens <= 1<<20, "model.maxOutputTokens", "1 to %d tokens, or none",
		1<<20)
	modes := []model.Calling{"", model.CallingAuto, model.CallingAny, model.CallingValidated}
	c.needs(slices.Contains(modes, m.Calling), "model.calling", "AUTO, ANY or VALIDATED, and not %q",
		string(m.Calling))
	c.needs(len(m.Allowed) == 0 || m.Calling == model.CallingAny || m.Calling == model.CallingValidated,
		"model.allowed", "names are allowed where model.calling is ANY or VALIDATED")
	for _, name := range m.Allowed {
		c.needs(callable(name), "model.allowed", "%q is none of the agent's tools", name)
	}
	c.needs(m.Forced == "" || callable(m.Forced), "model.forced", "%q is none of the agent's tools", m.Forced)
}

func (c *checker) limits(a Agent) {
	l, calls := a.Limits, 50
	if a.Plans { // a session has many tasks
		calls = 10_000
	}
	number := func(field string, n, least, most int) {
		c.needs(n >= least && n <= most, "limits."+field, "%d to %d, and not %d", least, most, n)
	}
	span := func(field string, d, least, most time.Duration) {
		c.needs(d >= least && d <= most, "limits."+field, "%s to %s, and not %s", least, most, d)
	}
	const day = 24 * time.Hour
	number("modelCalls", l.ModelCalls, 1, calls)
	number("contents", l.Contents, 0, 8<<20)
	number("maxOpen", l.MaxOpen, 0, 10_000)
	number("maxPerDay", l.MaxPerDay, 0, 10_000)
	number("maxAsks", l.MaxAsks, 0, 10_000)
	span("deadline", l.Deadline, time.Second, 90*day)
	span("approvalTTL", l.ApprovalTTL, time.Second, 30*day)
	span("answerTTL", l.AnswerTTL, 0, 90*day)
	span("modelTimeout", l.ModelTimeout, time.Second, 10*time.Minute)
	span("longestTool", l.LongestTool, 0, time.Hour)
	span("toolTimeout", l.ToolTimeout, time.Second, 10*time.Minute)
}

func (c *checker) budget(a Agent) {
	b := a.Limits.Budget
	c.needs(b.Tokens >= 0, "limits.budget.tokens", "1 or more, or 0 for no bound, and not %d", b.Tokens)
	c.needs(b.Effects >= 0, "limits.budget.effects", "1 or more, or 0 for no bound, and not %d", b.Effects)
	c.needs(b.Money >= 0, "limits.budget.money", "1 or more, or 0 for no bound, and not %d", b.Money)
	for _, name := range slices.Sorted(maps.Keys(b.Prices)) {
		p := b.Prices[name]
		c.needs(min(p.Input, p.Cached, p.Output, p.Thoughts) >= 0 &&
			max(p.Input, p.Cached, p.Output, p.Thoughts) <= run.MaxPrice, "limits.budget.prices",
			"of %q: 0 to %d millionths for a million tokens", name, int64(run.MaxPrice))
	}
	c.needs(a.Model.Name == "" && len(b.Prices) > 0 || b.Priced(a.Model.Name), "limits.budget.prices",
		"there is no price for %s, so nothing can be known of money",
		cmp.Or(a.Model.Name, "the model"))
}
