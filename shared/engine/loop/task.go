package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// sessionSettings returns the settings of a session's model request. The model must always call a tool. In the last
// request of a revision or a task, it must propose the plan or reflect on the task.
func sessionSettings(ex *unit.Execution, agent *registry.Agent) model.Settings {
	set := agent.Model
	set.Calling, set.Allowed, set.Forced = model.CallingAny, nil, ""
	if ex.Terms().LastCall(ex.State) {
		set.Forced = plan.ReflectTool
		if ex.State.Plan.Phase() == plan.Planning {
			set.Forced = plan.ProposeTool
		}
	}
	return set
}

// inSession adds the calls of one answer of a session's model.
type inSession struct {
	tx       *unit.Tx
	calls    int        // number of calls in the answer
	revision *plan.Plan // a changed plan that follows from a reflection and needs the user's approval
}

// propose adds one call. The model gives a reason for each call; the reason is neither hashed nor executed.
func (in *inSession) propose(ctx context.Context, call run.ProposedCall, args json.RawMessage,
	at approval.CurrentPlace) error {
	id := run.ActionID(in.tx.Run.ID, call.Turn, call.Index, 0)
	why := in.misplaced(call)
	if why == nil {
		args, call.Reasoning, why = in.tx.Ex.Toolbox.TakeReasoning(in.tx.Run, in.tx.State, call.Tool, args)
	}
	if why != nil {
		call.Tool = approval.DisplayName(call.Tool)
		return approval.Reject(in.tx, id, call, why)
	}
	if err := propose(ctx, in.tx, call, args, at); err != nil {
		return err
	}
	if a := in.tx.State.Action(id); a.Tool == plan.ReflectTool && a.Runnable() {
		return in.reflect(a)
	}
	return nil
}

// codeNotRun is the error code of a call that is not made because of its position among the others.
const codeNotRun fault.Code = "not_run"

// misplaced returns the reason why a call is not made: its task is over, or it must not follow the other calls of the
// answer. It returns nil for any other call.
func (in *inSession) misplaced(call run.ProposedCall) error {
	before, _ := in.tx.State.Segment()
	if why := in.tx.State.Plan.CheckCall(call.Tool); why != nil && call.Turn > before {
		return why
	}
	switch {
	case call.Turn <= before:
		return fault.New(fault.Policy, codeNotRun, "The task is over, so this was not run.")
	case call.Tool == plan.ProposeTool && in.calls > 1:
		return fault.New(fault.Policy, codeNotRun, "A plan is proposed alone, in an answer without other calls.")
	case call.Tool == plan.ReflectTool && call.Index > 0:
		return fault.New(fault.Policy, codeNotRun,
			"Reflect on a step before the next call: the reflection must be the first call.")
	}
	return nil
}

// reflect records the model's reflection on the current task. Its consequences are part of the transition that proposes
// the call, so the end of a task costs no further commit.
func (in *inSession) reflect(a *run.Action) error {
	var said plan.Reflection
	if err := json.Unmarshal(a.Args, &said); err != nil {
		return err
	}
	verdict, err := in.tx.State.Plan.Judge(said, in.tx.Ex.Toolbox.PlanBind(in.tx.Run, in.tx.State, in.tx.Now))
	if err == nil && verdict.Refused != "" {
		err = fault.New(fault.Policy, "not_proven", "%s", verdict.Refused)
	}
	if taken := effect.TakeCall(in.tx, a, err); taken != nil {
		return taken
	}
	in.revision = verdict.Revision
	if err := approval.Planned(in.tx, verdict.Events...); err != nil || in.revision != nil {
		return err
	}
	return goOn(in.tx)
}

// proposeRevision requests approval of the changed plan that follows from a reflection, if there is one. If no further
// revision is allowed, the plan continues unchanged.
func (in *inSession) proposeRevision(ctx context.Context) error {
	if in.revision == nil {
		return nil
	}
	if in.tx.State.Plan.Revision < plan.MaxRevisions {
		if err := proposePlan(ctx, in.tx, *in.revision); err != nil {
			return err
		}
	}
	return goOn(in.tx)
}

// giveUpTask gives up a task or a planning phase that makes no progress.
func giveUpTask(ctx context.Context, ex *unit.Execution) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if st, _ := tx.Next(); st != run.StepGiveUpTask || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		return giveUp(tx, tx.State.Plan.Stuck())
	})
}

// giveUp gives up the current phase of a session, and ends the run if nothing is left.
func giveUp(tx *unit.Tx, why string) error {
	if err := approval.Planned(tx, tx.State.Plan.GiveUp(why)...); err != nil {
		return err
	}
	if err := goOn(tx); err != nil {
		return err
	}
	if end := tx.Ending(); end != nil {
		return endRun(tx, end)
	}
	return nil
}
