package loop

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Grants revokes grants of sessions' plans.
type Grants struct{ Loop *Loop }

// Revoke revokes a grant of the session's confirmed plan. From this commit on, no intent can use the grant. Revoking it
// again changes nothing. Errors: AuthError not_found for a run or a grant that is not the user's; PolicyError
// already_resolved for a session that has ended.
func (g Grants) Revoke(ctx context.Context, uid, runID, grantID string) error {
	ex := g.Loop.NewExecution(runID, nil)
	soon, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	if err := ex.LoadOwned(soon, uid); err != nil {
		return err
	}
	return ex.Transition(soon, func(tx *unit.Tx) error {
		if tx.State.Plan == nil {
			return fault.NotFound()
		}
		grants := tx.State.Plan.Grants()
		i := slices.IndexFunc(grants, func(g plan.GrantState) bool { return g.ID == grantID })
		switch {
		case i < 0:
			return fault.NotFound()
		case grants[i].Revoked:
			return nil
		case tx.State.End != nil:
			return fault.New(fault.Policy, fault.CodeAlreadyResolved, "This plan has ended.")
		}
		tx.KeepLease = true
		return approval.Planned(tx, plan.Event{Revoked: &plan.Revoked{GrantID: grantID}})
	})
}
