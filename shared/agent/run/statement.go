package run

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Permits reports whether the decision lets a call run, or a plan. Only these decisions are signed: without them,
// nothing more happens.
func (d Decision) Permits() bool {
	switch d {
	case ApproveOnce, ApproveEdited, ApproveAlways, ApproveAlwaysCommand:
		return true
	}
	return false
}

// Deciding returns the statement of a decision that is not recorded yet. covers is what it permits for later calls: see
// [PlanCovers].
func (r Run) Deciding(a *Action, d *Decided, covers any) decision.Statement {
	then := *a
	then.decide(d)
	return r.Decided(&then, then.ArgsHash, covers)
}

// Decided returns the statement of the decision that permits the action. argsHash is the hash of the call that is about
// to run, not the stored one.
func (r Run) Decided(a *Action, argsHash string, covers any) decision.Statement {
	s := r.statement(decision.Call, a.ID, a.Tool, argsHash, a.Place)
	if a.Kind == KindPlan {
		s.Kind = decision.Plan
	}
	s.ApprovalID, s.By, s.Decision = a.ApprovalID, a.DecidedBy, string(a.Decision)
	s.Edited, s.HeldUntil, s.Covers, s.RestsOn = a.Edited, a.HeldUntil, covers, a.RestsOn
	return s
}

// OwnCall returns the statement of a call that the user makes.
func (r Run) OwnCall(actionID, name, argsHash string, in tool.Place) decision.Statement {
	return r.statement(decision.Own, actionID, name, argsHash, in)
}

func (r Run) statement(kind decision.Kind, actionID, name, argsHash string, in tool.Place) decision.Statement {
	return decision.Statement{Kind: kind, UID: r.UID, RunID: r.ID, Agent: r.AgentName(), Terminal: r.Terminal,
		Origin: r.Origin, ActionID: actionID, Tool: name, ArgsHash: argsHash, Place: in}
}

// PlanCovers returns the later calls that the confirmation of a plan permits.
type PlanCovers struct {
	Hash   string       `json:"hash"` // of the confirmed plan
	Strict bool         `json:"strict,omitempty"`
	Grants []plan.Grant `json:"grants,omitempty"`
}

// CoversOf returns what the confirmation of the plan with these bytes and this hash permits.
func CoversOf(canonical json.RawMessage, hash string, strict bool) (PlanCovers, error) {
	p, err := plan.Decode(canonical)
	return PlanCovers{hash, strict, p.Grants}, err
}
