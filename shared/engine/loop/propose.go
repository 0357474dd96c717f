package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// propose adds a call. If the call is allowed and its turn has come, a call that the client carries out is given to the
// client, and the call of a typed answer is completed.
func propose(ctx context.Context, tx *unit.Tx, call run.ProposedCall, args json.RawMessage,
	at approval.CurrentPlace) error {
	if err := approval.Validate(ctx, tx, call, args, at); err != nil {
		return err
	}
	a := tx.State.Action(run.ActionID(tx.Run.ID, call.Turn, call.Index, 0))
	t, terms := tx.ToolIn(a.Tool, a.UserInitiated), tx.Terms()
	switch {
	case !a.Runnable() || !terms.MayBegin(tx.State, a.Index) || !terms.CanAfford(tx.State, a):
		return nil
	case tx.State.Plan != nil && t.Name == plan.ReflectTool:
		return nil // inSession handles it
	case t.Waits():
		return effect.LeaveToClient(tx, a.ID, t)
	case tx.State.Input.Takes(a):
		return effect.TakeAnswer(tx, a)
	}
	return nil
}
