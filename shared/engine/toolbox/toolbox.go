// Package toolbox holds the tools of one run: those that its model may call at the moment, and those of calls that were
// proposed earlier. The tools come from the process, from MCP servers, from the run's page, and from the run itself:
// the typed answer, the tools of a session, and the tool that takes back proposals.
package toolbox

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Source provides the tools of one process.
type Source struct {
	Tools  tool.Set
	Served Dynamic // tools that come and go; nil: none
	Agents registry.Set
	// TakeBack withdraws a proposal that still waits, at its user's word. A PolicyError says that the proposal no
	// longer waits. Nil: no model gets the tool.
	TakeBack func(ctx context.Context, uid, approvalID string) error
}

// Now returns the tools that are available at the moment.
func (s Source) Now() tool.Set {
	if s.Served == nil {
		return s.Tools
	}
	all := s.Served.Tools()
	maps.Copy(all, s.Tools)
	return all
}

// Await returns the available tools after every server has been asked, or has had time to answer.
func (s Source) Await(ctx context.Context) tool.Set {
	if s.Served != nil {
		s.Served.Await(ctx)
	}
	return s.Now()
}

// Toolbox holds the tools of one run, as one process knows them.
type Toolbox struct {
	Tools    tool.Set // the tools of the process and of its servers, as last read
	from     Source
	now      func() time.Time
	answer   *tool.Tool // cached by answerTool
	page     tool.Set   // cached by Page
	takeBack *tool.Tool // cached by takeBackTool
}

// New returns the toolbox of a run. now returns the time for checks of plans.
func New(from Source, now func() time.Time) Toolbox {
	return Toolbox{Tools: from.Now(), from: from, now: now}
}

// For returns a copy for another goroutine. now returns the time for checks of plans.
func (b Toolbox) For(now func() time.Time) Toolbox {
	b.now = now
	return b
}

// Offered returns the tools that the run's model may call, in a fixed order: the agent's tools that the run may use,
// the tools of its page, the tool for a typed answer, and [TakeBackTool] if an earlier proposal may still wait.
func (b *Toolbox) Offered(r run.Run, s *run.State) []tool.Spec {
	in := s.Input
	if s.Plan != nil {
		return b.offeredInSession(r, s)
	}
	specs := slices.DeleteFunc(b.from.Agents.Get(r.Agent).Specs(b.Tools), func(s tool.Spec) bool {
		return !in.Has(s.Name) || in.Answer != nil && s.Name == tool.FinalAnswer || in.OfPage(s.Name)
	})
	page := b.Page(in)
	for _, d := range in.PageTools {
		specs = append(specs, page[d.Name].Spec)
	}
	if t := b.answerTool(in); t != nil {
		specs = append(specs, t.Spec)
	}
	if t := b.takeBackTool(in); t != nil && len(s.Actions) == 0 {
		specs = append(specs, t.Spec)
	}
	return specs
}

// Callable returns the tool if the run may call it, or nil. The model may call a tool of its page or its agent that the
// run began with. A user's own call may use any tool. If this process does not know the agent, Callable accepts every
// tool that the run began with.
func (b *Toolbox) Callable(r run.Run, s *run.State, name string, userInitiated bool) *tool.Tool {
	if userInitiated {
		return b.Tools[name]
	}
	if t := b.planTool(r, s, name); t != nil {
		return t
	}
	agent, in := b.from.Agents.Get(r.Agent), s.Input
	switch {
	case in.Answer != nil && name == tool.FinalAnswer:
		return b.answerTool(in)
	case in.OfPage(name):
		return b.Page(in)[name]
	case name == TakeBackTool && b.takeBackTool(in) != nil:
		if !mayTakeBack(s) {
			return nil
		}
		return b.takeBackTool(in)
	case !in.Has(name), agent != nil && !agent.Has(name):
		return nil
	}
	return b.Tools[name]
}

// Proposed returns the tool of a call that was proposed, even if the run may no longer call it. It returns nil if the
// tool no longer exists.
func (b *Toolbox) Proposed(r run.Run, s *run.State, name string) *tool.Tool {
	if t := b.planTool(r, s, name); t != nil {
		return t
	}
	if s.Input.OfPage(name) {
		return b.Page(s.Input)[name]
	}
	if t := b.takeBackTool(s.Input); t != nil && name == TakeBackTool {
		return t
	}
	return b.Tools[name]
}

// answerTool returns the tool for the run's typed answer, or nil if the answer is text.
func (b *Toolbox) answerTool(in run.Input) *tool.Tool {
	if in.Answer != nil && b.answer == nil {
		b.answer, _ = tool.Answer(in.Answer) // the schema was checked when the run began
	}
	return b.answer
}

// Page returns the tools that the page provided when the run began. None had the name of a tool of this process then.
// Their descriptions and results count as strangers' text.
func (b *Toolbox) Page(in run.Input) tool.Set {
	if in.PageTools != nil && b.page == nil {
		b.page = tool.Set{}
		for _, d := range in.PageTools {
			if t, err := tool.Remote(d.Name, d.Description, d.Schema); err == nil { // it was checked when the run began
				t.Untrusted, t.Source = true, "the page"
				b.page[d.Name] = t
			}
		}
	}
	return b.page
}

// TakeReasoning splits the arguments of a call in a session into the tool's arguments and the model's reason. The error
// is a ValidationError if the reason is missing.
func (b *Toolbox) TakeReasoning(r run.Run, s *run.State, name string, args json.RawMessage) (rest json.RawMessage,
	reason string, err error) {
	t := b.Callable(r, s, name, false)
	if t == nil || b.planTool(r, s, name) != nil {
		return args, "", nil
	}
	return plan.TakeReasoning(t.Spec, args)
}
