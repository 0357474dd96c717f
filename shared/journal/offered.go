package journal

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// Offered returns what the run's model is offered, in a fixed order: of the tools that the run began with those that
// its agent has here, those of its page, and the tool for its answer, if that has a form.
func Offered(ex *Execution) []tool.Spec {
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
	return specs
}

// ToolOf returns the tool if it may be called in the run, or nil: by the model if it is its page's or its agent's, and
// the run began with it. What its user calls themselves is not the agent's concern. While the agent is not here, what
// it asked for where it was is taken for its own.
func ToolOf(ex *Execution, name string, userInitiated bool) *tool.Tool {
	return toolOf(ex, ex.Run, ex.State, name, userInitiated)
}

// ToolIn is [ToolOf] for the run as it will be.
func ToolIn(tx *Tx, name string, userInitiated bool) *tool.Tool {
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
	case !in.Has(name), its != nil && !its.Has(name):
		return nil
	}
	return ex.Tools[name]
}

// ToolFor returns the tool of a call that was proposed, whoever may call it by now, or nil where it is gone.
func ToolFor(ex *Execution, r run.Run, s *run.State, name string) *tool.Tool {
	if t := planTool(ex, r, s, name); t != nil {
		return t
	}
	if s.Input.OfPage(name) {
		return pageTools(ex, s.Input)[name]
	}
	return ex.Tools[name]
}

// answerTool returns the tool for the run's answer, or nil where the answer is words.
func answerTool(ex *Execution, in run.Input) *tool.Tool {
	if in.Answer != nil && ex.answer == nil {
		ex.answer, _ = tool.Answer(in.Answer) // it was checked when the run began
	}
	return ex.answer
}

// pageTools returns the tools that the page brought when the run began, none of which had the name of a tool that was
// here then. What the page says of them, and what they return, may be a stranger's.
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

// TakeReasoning returns the arguments of a call in a session without the reason that the model gives for it, and that
// reason. The error is a ValidationError where it gives none.
func TakeReasoning(tx *Tx, name string, args json.RawMessage) (rest json.RawMessage, reason string, err error) {
	t := ToolIn(tx, name, false)
	if t == nil || planTool(tx.Ex, tx.Run, tx.State, name) != nil {
		return args, "", nil
	}
	return plan.TakeReasoning(t.Spec, args)
}
