package journal

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Offered returns the tools that the run's model may call, in a fixed order: the agent's tools that the run may use,
// the tools of its page, the tool for a typed answer, and [TakeBackTool] if an earlier proposal may still wait.
func (ex *Execution) Offered() []tool.Spec {
	in := ex.State.Input
	if ex.State.Plan != nil {
		return offeredInSession(ex)
	}
	specs := slices.DeleteFunc(ex.Agents.Get(ex.Run.Agent).Specs(ex.Tools), func(s tool.Spec) bool {
		return !in.Has(s.Name) || in.Answer != nil && s.Name == tool.FinalAnswer || in.OfPage(s.Name)
	})
	its := pageTools(ex, in)
	for _, d := range in.PageTools {
		specs = append(specs, its[d.Name].Spec)
	}
	if t := answerTool(ex, in); t != nil {
		specs = append(specs, t.Spec)
	}
	if t := takeBackTool(ex, in); t != nil && len(ex.State.Actions) == 0 {
		specs = append(specs, t.Spec)
	}
	return specs
}

// ToolOf returns the tool if the run may call it, or nil. The model may call a tool of its page or its agent that the
// run began with. A user's own call may use any tool. If this process does not know the agent, ToolOf accepts every
// tool that the run began with.
func (ex *Execution) ToolOf(name string, userInitiated bool) *tool.Tool {
	return toolOf(ex, ex.Run, ex.State, name, userInitiated)
}

// ToolIn is [Execution.ToolOf] for the state of the run in the transition.
func (tx *Tx) ToolIn(name string, userInitiated bool) *tool.Tool {
	return toolOf(tx.Ex, tx.Run, tx.State, name, userInitiated)
}

func toolOf(ex *Execution, r run.Run, s *run.State, name string, userInitiated bool) *tool.Tool {
	its, in := ex.Agents.Get(r.Agent), s.Input
	switch {
	case userInitiated:
		return ex.Tools[name]
	case planTool(ex, r, s, name) != nil:
		return planTool(ex, r, s, name)
	case in.Answer != nil && name == tool.FinalAnswer:
		return answerTool(ex, in)
	case in.OfPage(name):
		return pageTools(ex, in)[name]
	case name == TakeBackTool && takeBackTool(ex, in) != nil:
		if !mayTakeBack(s) {
			return nil
		}
		return takeBackTool(ex, in)
	case !in.Has(name), its != nil && !its.Has(name):
		return nil
	}
	return ex.Tools[name]
}

// ToolFor returns the tool of a call that was proposed, even if the run may no longer call it. It returns nil if the
// tool no longer exists.
func (ex *Execution) ToolFor(r run.Run, s *run.State, name string) *tool.Tool {
	if t := planTool(ex, r, s, name); t != nil {
		return t
	}
	if s.Input.OfPage(name) {
		return pageTools(ex, s.Input)[name]
	}
	if t := takeBackTool(ex, s.Input); t != nil && name == TakeBackTool {
		return t
	}
	return ex.Tools[name]
}

// answerTool returns the tool for the run's typed answer, or nil if the answer is text.
func answerTool(ex *Execution, in run.Input) *tool.Tool {
	if in.Answer != nil && ex.answer == nil {
		ex.answer, _ = tool.Answer(in.Answer) // the schema was checked when the run began
	}
	return ex.answer
}

// pageTools returns the tools that the page provided when the run began. None had the name of a tool of this process
// then. Their descriptions and results count as strangers' text.
func pageTools(ex *Execution, in run.Input) tool.Set {
	if in.PageTools != nil && ex.page == nil {
		ex.page = tool.Set{}
		for _, d := range in.PageTools {
			if t, err := tool.Remote(d.Name, d.Description, d.Schema); err == nil { // it was checked when the run began
				t.Untrusted, t.Source = true, "the page"
				ex.page[d.Name] = t
			}
		}
	}
	return ex.page
}

// TakeReasoning splits the arguments of a call in a session into the tool's arguments and the model's reason. The error
// is a ValidationError if the reason is missing.
func (tx *Tx) TakeReasoning(name string, args json.RawMessage) (rest json.RawMessage, reason string, err error) {
	t := tx.ToolIn(name, false)
	if t == nil || planTool(tx.Ex, tx.Run, tx.State, name) != nil {
		return args, "", nil
	}
	return plan.TakeReasoning(t.Spec, args)
}
