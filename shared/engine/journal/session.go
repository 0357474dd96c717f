package journal

import (
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Bind returns the constraints on a plan of the run's session.
func Bind(tx *Tx) plan.Bind {
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

// GrantFacts returns the audit facts about the grant that permits the call: its ID, and the plan and the approval that
// contain it. It returns nil for a call without a grant.
func GrantFacts(tx *Tx, a *run.Action) tool.Facts {
	if a.Started.Grant == "" || tx.State.Plan == nil || tx.State.Plan.Confirmed == nil {
		return nil
	}
	by := tx.State.Plan.Confirmed
	return tool.Facts{"grant": a.Started.Grant, "plan": audit.InputHash(tx.nonce(), by.Hash), "approval": by.ApprovalID}
}

// LastCall reports whether the next model call of the session is the last one (run.Terms.LastCall).
func LastCall(ex *Execution) bool { return ex.terms(ex.Run).LastCall(ex.State) }

// errNoPlanNow and errNoTaskNow reject calls of a session's own tools in the wrong phase.
var (
	errNoPlanNow = fault.New(fault.Policy, "not_now", "No plan is proposed while a task is under way; reflect on it.")
	errNoTaskNow = fault.New(fault.Policy, "not_now", "There is no task to reflect on; propose a plan.")
)

// CheckPhase returns an error if the session's own tool may not be called now, or nil.
func CheckPhase(tx *Tx, name string) error {
	s := tx.State.Plan
	switch {
	case name == plan.ProposeTool && s.Phase() != plan.Planning:
		return errNoPlanNow
	case name == plan.ReflectTool && s.Current == nil:
		return errNoTaskNow
	}
	return nil
}
