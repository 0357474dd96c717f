package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// askAfterAll requests an approval of a call that the policy allows, because of what its tool has found where the call
// would act.
func askAfterAll(ctx context.Context, ex *journal.Execution, found *run.Action, why error) error {
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		a := tx.State.Action(found.ID)
		if !a.Runnable() || a.Decision != "" || tx.Ending() != nil || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		u, err := tx.User()
		if err != nil {
			return err
		}
		if err := approval.CheckCaps(tx, u); err != nil {
			return block(tx, a, a.Rule, err)
		}
		call := *a
		call.Place, call.ArgsHash = found.Place, found.ArgsHash
		return approval.Request(tx, &call, run.KindApproval, fault.As(why).Message)
	})
}
