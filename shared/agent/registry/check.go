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

// reserved lists the names of the built-in agents.
var reserved = []string{run.Assistant, run.Page, run.Terminal, run.TerminalChat, run.Planner}

var (
	validWorker = lazyregexp.New(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`) // a function of infra/functions.json
	validName   = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
	// A server's name ends at the first _ (mcpfile).
	validServed = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,31}_([A-Za-z0-9_.-]{1,61}|\*)$`)
	validModel  = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/@-]{0,127}$`)
)

// ValidName reports whether the name is valid for an agent.
func ValidName(name string) bool { return validName.MatchString(name) }

// New returns the registry of the built-in and the declared agents. tools are the deployment's tools. The error joins a
// ValidationError for each invalid setting, whose field has the agent's name and the setting.
func New(tools tool.Set, builtIn, declared []Agent) (Set, error) {
	s := Set{}
	var wrong []error
	for i, a := range slices.Concat(builtIn, declared) {
		c := checker{agent: a.Name, tools: tools}
		switch {
		case !ValidName(a.Name):
			c.fail("name", "a name is a lower-case letter and up to 31 lower-case letters, digits and hyphens")
		case i >= len(builtIn) && slices.Contains(reserved, a.Name):
			c.fail("name", "this is the name of a built-in agent")
		case s[a.Name] != nil:
			c.fail("name", "duplicate agent name")
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

// checker collects the errors of one agent.
type checker struct {
	agent string
	tools tool.Set
	wrong []error
}

func (c *checker) fail(field, format string, args ...any) {
	c.wrong = append(c.wrong, fault.Invalid(c.agent+"."+field, format, args...))
}

// needs records an error unless ok is true.
func (c *checker) needs(ok bool, field, format string, args ...any) {
	if !ok {
		c.fail(field, format, args...)
	}
}

func (c *checker) check(a Agent) {
	c.needs(a.Worker == "" || a.Name != run.Assistant && validWorker.MatchString(a.Worker), "home", "need a "+
		"function's name; the assistant must stay in %s, because messages of older releases name no agent",
		DefaultWorker)
	c.needs(len(a.Description) <= 1<<10, "description", "%d bytes; the limit is 1024", len(a.Description))
	c.examples(a)
	c.needs(a.Instructions != nil, "instructions", "instructions are missing")
	for i, name := range a.Tools {
		// Only an agent's worker has the tools of the agent.
		c.needs(c.tools[name] != nil || a.Worker != "", "tools", "there is no tool %q", name)
		c.needs(!slices.Contains(a.Tools[:i], name), "tools", "duplicate %q", name)
	}
	for i, name := range a.Dynamic {
		c.needs(validServed.MatchString(name), "tools", "%q is not a valid name for a server's tool", name)
		c.needs(!slices.Contains(a.Dynamic[:i], name), "tools", "duplicate %q", name)
	}
	for _, name := range a.Ask {
		c.needs(a.Has(name), "ask", "%q is not a tool of the agent", name)
	}
	c.model(a)
	c.responseSchema(a)
	c.limits(a)
	c.budget(a)
	c.needs(slices.Contains([]History{HistoryWords, HistoryNone, HistoryVerbatim}, a.History), "history",
		"must be words, none or verbatim, not %q", string(a.History))
	z := a.Compression
	c.needs(z.Threshold >= 0 && z.Threshold <= 1, "compression.threshold", "must be 0 to 1, not %g", z.Threshold)
	c.needs(z.Window == 0 || z.Window >= 1000 && z.Window <= 1<<26, "compression.window",
		"must be 1000 to %d tokens, or 0, not %d", 1<<26, z.Window)
	c.needs(z.Threshold == 0 || z.Window > 0, "compression.threshold", "needs compression.window")
	c.needs(z.Window == 0 || a.History == HistoryVerbatim, "compression", "needs the history verbatim")
	c.needs(slices.Contains([]OnReject{RejectCompletes, RejectFails, RejectContinues}, a.OnReject), "onReject",
		"must be completed, failed or continue, not %q", string(a.OnReject))
	c.needs(slices.Contains([]policy.Effects{policy.AskEffects, policy.AutoApprove, policy.NoEffects}, a.Effects),
		"effects", "must be auto_approve, none or empty, not %q", string(a.Effects))
	c.needs(slices.Contains([]Order{"", Independent, Sequential, Strict}, a.Order), "order",
		"must be independent, sequential or strict, not %q", string(a.Order))
	if a.Plans {
		c.plans(a)
	}
}

// plans checks the settings that planner sessions depend on: only the user confirms a plan and can request another one,
// a task's calls run in order, and each phase decides which tools the model can call.
func (c *checker) plans(a Agent) {
	const why = "for an agent that plans, this must be "
	c.needs(a.Effects == policy.AskEffects, "effects", why+"empty, so that its user confirms each plan")
	c.needs(a.OnReject == RejectContinues, "onReject", why+"%s", string(RejectContinues))
	c.needs(a.Order == Strict, "order", why+"%s", string(Strict))
	c.needs(a.History != HistoryVerbatim, "history", why+"%s or %s", string(HistoryWords), string(HistoryNone))
	c.needs(a.Model.Calling == "" && a.Model.Forced == "", "model.calling", why+"empty, and so is model.forced")
	c.needs(!a.Page && !a.OnTerminal, "plans", "a planner session cannot use a page or a terminal")
}

func (c *checker) responseSchema(a Agent) {
	if a.ResponseSchema == nil {
		return
	}
	c.needs(!a.Page && !a.Plans, "responseSchema", "an agent with page or plans answers in words")
	if _, err := tool.Answer(a.ResponseSchema); err != nil {
		f := fault.As(fault.Within("responseSchema", err))
		c.fail(f.Field, "%s", f.Message)
	}
}

// Limits of an agent's examples. Each must fit on a button.
const (
	MaxExamples = 6
	MaxExample  = 200 // bytes
)

func (c *checker) examples(a Agent) {
	c.needs(len(a.Examples) <= MaxExamples, "examples", "%d; the limit is %d", len(a.Examples),
		MaxExamples)
	for i, e := range a.Examples {
		c.needs(e != "" && len(e) <= MaxExample && e == strings.Join(strings.Fields(e), " "), "examples",
			"%q: need one line of at most %d bytes", e, MaxExample)
		c.needs(!slices.Contains(a.Examples[:i], e), "examples", "duplicate %q", e)
	}
}

func (c *checker) model(a Agent) {
	m := a.Model
	callable := func(name string) bool {
		t := c.tools[name]
		return (t == nil && a.Worker != "" || t != nil && !t.UserOnly) && a.Has(name)
	}
	c.needs(m.Name == "" || validModel.MatchString(m.Name), "model.name", "%q is not a valid model name", m.Name)
	c.needs(m.Temperature == nil || *m.Temperature >= 0 && *m.Temperature <= 2, "model.temperature", "must be 0 to 2")
	c.needs(m.MaxOutputTokens >= 0 && m.MaxOutputTokens <= 1<<20, "model.maxOutputTokens",
		"must be 1 to %d tokens, or 0", 1<<20)
	modes := []model.Calling{"", model.CallingAuto, model.CallingAny, model.CallingValidated}
	c.needs(slices.Contains(modes, m.Calling), "model.calling", "must be AUTO, ANY or VALIDATED, not %q",
		string(m.Calling))
	c.needs(len(m.Allowed) == 0 || m.Calling == model.CallingAny || m.Calling == model.CallingValidated,
		"model.allowed", "needs model.calling ANY or VALIDATED")
	for _, name := range m.Allowed {
		c.needs(callable(name), "model.allowed", "%q is not a tool of the agent", name)
	}
	c.needs(m.Forced == "" || callable(m.Forced), "model.forced", "%q is not a tool of the agent", m.Forced)
}

func (c *checker) limits(a Agent) {
	l, calls := a.Limits, 50
	if a.Plans { // a session has many tasks
		calls = 10_000
	}
	number := func(field string, n, least, most int) {
		c.needs(n >= least && n <= most, "limits."+field, "must be %d to %d, not %d", least, most, n)
	}
	span := func(field string, d, least, most time.Duration) {
		c.needs(d >= least && d <= most, "limits."+field, "must be %s to %s, not %s", least, most, d)
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
	c.needs(b.Tokens >= 0, "limits.budget.tokens", "must be 0 (no limit) or more, not %d", b.Tokens)
	c.needs(b.Effects >= 0, "limits.budget.effects", "must be 0 (no limit) or more, not %d", b.Effects)
	c.needs(b.Money >= 0, "limits.budget.money", "must be 0 (no limit) or more, not %d", b.Money)
	for _, name := range slices.Sorted(maps.Keys(b.Prices)) {
		p := b.Prices[name]
		c.needs(min(p.Input, p.Cached, p.Output, p.Thoughts) >= 0 &&
			max(p.Input, p.Cached, p.Output, p.Thoughts) <= run.MaxPrice, "limits.budget.prices",
			"of %q: must be 0 to %d millionths for a million tokens", name, int64(run.MaxPrice))
	}
	c.needs(a.Model.Name == "" && len(b.Prices) > 0 || b.Priced(a.Model.Name), "limits.budget.prices",
		"there is no price for %s, so the cost is unknown",
		cmp.Or(a.Model.Name, "the model"))
}
