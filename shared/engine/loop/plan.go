package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// proposePlan proposes a plan made by the server as if it were the model's answer.
func proposePlan(ctx context.Context, tx *unit.Tx, p plan.Plan) error {
	args, err := p.Canonical()
	if err != nil {
		return err
	}
	if err := tx.AddEvent(run.Event{Type: run.ModelAnswered, Turn: &run.Turn{Calls: 1}}); err != nil {
		return err
	}
	call := run.ProposedCall{Turn: len(tx.State.Turns), Tool: plan.ProposeTool}
	at, err := approval.Places(nil).Of(ctx, tx, tx.ToolIn(plan.ProposeTool, false))
	if err != nil {
		return err
	}
	return propose(ctx, tx, call, args, at)
}

// planDecided records the consequences of the decision about a plan, in the same commit. The first task of a confirmed
// plan begins.
func planDecided(tx *unit.Tx, ap *run.Approval, r approval.Resolution) error {
	switch {
	case ap.Kind != run.KindPlan:
		return nil
	case r.Decision == run.Refine:
		return approval.ClosePlan(tx, ap.ID, plan.Refined, r.Comment)
	case r.Decision == run.Reject: // an earlier plan may continue
		if err := approval.ClosePlan(tx, ap.ID, plan.Rejected, ""); err != nil {
			return err
		}
		return goOn(tx)
	}
	if err := effect.TakeCall(tx, tx.State.Action(ap.ActionID), nil); err != nil {
		return err
	}
	confirmed := &plan.Confirmed{ApprovalID: ap.ID, Hash: ap.ArgsHash, Strict: r.Strict}
	if r.Decision == run.ApproveEdited {
		confirmed.Plan = ap.Args
	}
	if err := approval.Planned(tx, plan.Event{Confirmed: confirmed}); err != nil {
		return err
	}
	return goOn(tx)
}

// goOn starts the next task of a confirmed plan, if one is left and none is in progress.
func goOn(tx *unit.Tx) error { return approval.Planned(tx, tx.State.Plan.Begin()...) }
