package journal

import (
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// PlanBind returns the constraints on a plan of the run's session.
func (tx *Tx) PlanBind() plan.Bind {
	return tx.State.Bind(sessionTools(tx.Ex, tx.Run), tx.Run.Region, tx.Now)
}

// planTool returns the tool with which the model of a session proposes its plan or reflects on a task. It returns nil
// for any other name.
func planTool(ex *Execution, r run.Run, s *run.State, name string) *tool.Tool {
	switch {
	case s.Plan == nil:
		return nil
	case name == plan.ProposeTool:
		return plan.Proposing(s.Bind(sessionTools(ex, r), r.Region, ex.Now()))
	case name == plan.ReflectTool:
		return plan.Reflecting()
	}
	return nil
}

// sessionTools returns the tools of the run's agent, or all tools if this process does not know the agent.
func sessionTools(ex *Execution, r run.Run) tool.Set {
	if its := ex.Agents.Get(r.Agent); its != nil {
		return its.Of(ex.Tools)
	}
	return ex.Tools
}

// offeredInSession returns the tools that the model of a session may call. During planning these are the tools without
// effects and the tool that proposes the plan. Later they are all tools and the tool that reflects on a step. Each call
// must include a reason.
func offeredInSession(ex *Execution) []tool.Spec {
	acting := ex.State.Plan.Phase() == plan.Acting
	var specs []tool.Spec
	for _, s := range ex.Agents.Get(ex.Run.Agent).Specs(ex.Tools) {
		if acting || !s.SideEffect {
			with, err := plan.WithReasoning(s)
			if err != nil {
				with = s // unreachable: each schema was read when its tool was made
			}
			specs = append(specs, with)
		}
	}
	own := plan.ProposeTool
	if acting {
		own = plan.ReflectTool
	}
	return append(specs, planTool(ex, ex.Run, ex.State, own).Spec)
}
