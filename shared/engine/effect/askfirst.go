package effect

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// askAfterAll requests an approval for a call that the policy allows, because its tool found a reason for one in the
// place where the call would act.
func askAfterAll(ctx context.Context, ex *unit.Execution, found *run.Action, why error) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a := tx.State.Action(found.ID)
		if !a.Runnable() || a.Decision != "" || tx.Ending() != nil || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		u, err := tx.User()
		if err != nil {
			return err
		}
		n := approval.Effects(tx, ex.Toolbox.Tools[a.Tool], a.Args)
		if err := approval.CheckCaps(tx, u, n); err != nil {
			return block(tx, a, a.Rule, err)
		}
		call := *a
		call.Place, call.ArgsHash = found.Place, found.ArgsHash
		return approval.Request(tx, &call, run.KindApproval, fault.As(why).Message)
	})
}

// askAgain asks the user of a quarantined run about a call that may have been executed already, before the call is
// prepared.
func askAgain(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a := tx.State.Action(id)
		if !a.Runnable() || !tx.Run.Doubts(a) || tx.Ending() != nil || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		_, _, err := recheckPolicy(tx, a, t)
		return err
	})
}

// askAnew records that a call was not done because it no longer matches what its user saw. It then requests an approval
// for the call in its present form. If no further approval may be requested, the call has failed.
func askAnew(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string, args json.RawMessage,
	seen approval.Seen, why error) error {
	f := failed(why)
	args, err := t.Normalize(args)
	if err != nil {
		ex.LogPanic(ctx, id, err)
		return recordOutcome(ctx, ex, id, f)
	}
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		a, over := tx.State.Action(id), tx.Ending() != nil
		if !ownsOutcome(tx, a) {
			return nil
		}
		if a.Status != run.ActionExecuting {
			f.Execution = run.NotStarted
		}
		if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: &f}); err != nil {
			return err
		}
		addOutcome(tx, a, f.Error)
		u, err := tx.User()
		if err != nil || over || approval.CheckCaps(tx, u, approval.Effects(tx, t, args)) != nil {
			return err
		}
		in, err, missing := tx.PlaceIn(ctx, t)
		if missing != nil {
			return missing
		}
		if err != nil {
			in = a.Place
		}
		return approval.AskAnew(tx, a, t, in, args, seen, f.Error.Message)
	})
}
