package toolbox

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// PlanBind returns the constraints on a plan of the run's session at the time now.
func (b *Toolbox) PlanBind(r run.Run, s *run.State, now time.Time) plan.Bind {
	return s.Bind(b.Agent(r.Agent), r.Locale, now)
}

// planTool returns the tool with which the model of a session proposes its plan or reflects on a task. It returns nil
// for any other name.
func (b *Toolbox) planTool(r run.Run, s *run.State, name string) *tool.Tool {
	switch {
	case s.Plan == nil:
		return nil
	case name == plan.ProposeTool:
		return plan.Proposing(b.PlanBind(r, s, b.now()))
	case name == plan.ReflectTool:
		return plan.Reflecting()
	}
	return nil
}

// Agent returns the tools of the named agent, or all tools if this process does not know the agent.
func (b *Toolbox) Agent(name string) tool.Set {
	if a := b.from.Agents.Get(name); a != nil {
		return a.Of(b.Tools)
	}
	return b.Tools
}

// offeredInSession returns the tools that the model of a session may call. During planning these are the tools without
// effects and the tool that proposes the plan. Later they are all tools and the tool that reflects on a step. Each call
// must include a reason.
func (b *Toolbox) offeredInSession(r run.Run, s *run.State) []tool.Spec {
	acting := s.Plan.Phase() == plan.Acting
	var specs []tool.Spec
	for _, spec := range b.from.Agents.Get(r.Agent).Specs(b.Tools) {
		if acting || !spec.SideEffect {
			with, err := plan.WithReasoning(spec)
			if err != nil {
				with = spec // unreachable: each schema was read when its tool was made
			}
			specs = append(specs, with)
		}
	}
	own := plan.ProposeTool
	if acting {
		own = plan.ReflectTool
	}
	return append(specs, b.planTool(r, s, own).Spec)
}
