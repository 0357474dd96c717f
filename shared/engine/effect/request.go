package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// RequestApproval asks the user about a call in strict order, once all calls before it are done. It uses the place
// where the call would act now. A call that is now denied, or whose tool no longer exists, fails. If the call needed an
// approval when it was planned, the approval is requested even if the policy allows the call now.
func RequestApproval(ctx context.Context, ex *unit.Execution, id string) error {
	a := ex.State.Action(id)
	if err := ex.Toolbox.Renew(ctx, a); err != nil {
		return recordOutcome(ctx, ex, id, failed(err))
	}
	t := ex.ToolOf(a.Tool, a.UserInitiated)
	switch {
	case t == nil:
		return recordOutcome(ctx, ex, id, failed(errNoTool()))
	case run.ArgsHash(ex.Run.UID, t.Spec, a.Place, a.Args) != a.ArgsHash:
		return recordOutcome(ctx, ex, id, failed(fault.New(fault.Policy, fault.CodeIntegrity,
			"The tool or the stored action has changed since it was planned, so it was not done.")))
	}
	if err := ex.ReadLinked(ctx, t, ex.Progressed); err != nil {
		return err
	}
	in, err := t.Place(ex.Linked(ctx, t), ex.Run.Scope())
	if err == nil {
		_, err = t.Preview(a.Args)
	}
	if err != nil {
		ex.LogPanic(ctx, id, err)
		return recordOutcome(ctx, ex, id, failed(err))
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		st, next := tx.Next()
		if st != run.StepRequest || next.ID != id || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		call := *next
		call.Place, call.ArgsHash = in, run.ArgsHash(tx.Run.UID, t.Spec, in, call.Args)
		_, _, err := recheckPolicy(tx, &call, t)
		return err
	})
}

func errNoTool() error {
	return fault.New(fault.Tool, "no_such_tool", "This tool is no longer available.")
}
