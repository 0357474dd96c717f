package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/run"
)

// sessionSettings returns how the model of a session is asked: for calls only, and when it is asked for the last time
// in a revision or a task, for the plan or for what it thinks of the task.
func sessionSettings(ex *journal.Execution, its *agents.Agent) model.Settings {
	set := its.Model
	set.Calling, set.Allowed, set.Forced = model.CallingAny, nil, ""
	if journal.LastCall(ex) {
		set.Forced = plan.ReflectTool
		if ex.State.Plan.Phase() == plan.Planning {
			set.Forced = plan.ProposeTool
		}
	}
	return set
}

// inSession adds the calls of one answer of a session's model.
type inSession struct {
	tx       *journal.Tx
	calls    int        // of the answer
	revision *plan.Plan // of the plan, that follows from a reflection among them and waits for the user
}

// propose adds one call. The model says with each why it makes it; that is no part of what is hashed or carried out.
func (in *inSession) propose(call run.ProposedCall, args json.RawMessage, at approval.Placement) error {
	id := run.ActionID(in.tx.Run.ID, call.Turn, call.Index, 0)
	why := in.misplaced(call)
	if why == nil {
		args, call.Reasoning, why = journal.TakeReasoning(in.tx, call.Tool, args)
	}
	if why != nil {
		call.Tool = approval.DisplayName(call.Tool)
		return approval.Reject(in.tx, id, call, why)
	}
	if err := propose(in.tx, call, args, at); err != nil {
		return err
	}
	if a := in.tx.State.Action(id); a.Tool == plan.ReflectTool && a.Runnable() {
		return in.reflect(a)
	}
	return nil
}

// codeNotRun is the code of a call that is not made because of where it stands among the others.
const codeNotRun fault.Code = "not_run"

// misplaced returns why a call is not made that comes when the task is over, or beside others where it must not.
func (in *inSession) misplaced(call run.ProposedCall) error {
	before, _ := in.tx.State.Segment()
	if why := journal.CheckPhase(in.tx, call.Tool); why != nil && call.Turn > before {
		return why
	}
	switch {
	case call.Turn <= before:
		return fault.New(fault.Policy, codeNotRun, "The task is over, so this was not run.")
	case call.Tool == plan.ProposeTool && in.calls > 1:
		return fault.New(fault.Policy, codeNotRun, "A plan is proposed alone, in an answer without other calls.")
	case call.Tool == plan.ReflectTool && call.Index > 0:
		return fault.New(fault.Policy, codeNotRun, "What you think of a step comes first, before the next call.")
	}
	return nil
}

// reflect takes what the model thinks of the present task. What follows from it is part of the transition that
// proposes the call, so that the end of a task costs no commit.
func (in *inSession) reflect(a *run.Action) error {
	var said plan.Reflection
	if err := json.Unmarshal(a.Args, &said); err != nil {
		return err
	}
	verdict, err := in.tx.State.Plan.Judge(said, journal.Bind(in.tx))
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

// proposeRevision has the user asked about the revision of the plan that a reflection has led to, if one has. Where
// nothing more may be asked, the plan goes on as it is.
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

// giveUpTask gives the present task up, or the planning of changes, because it leads nowhere.
func giveUpTask(ctx context.Context, ex *journal.Execution) error {
	return ex.Transition(ctx, func(tx *journal.Tx) error {
		if st, _ := tx.Next(); st != run.StepGiveUpTask || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		return giveUp(tx, tx.State.Plan.Stuck())
	})
}

// giveUp gives up what a session is at, and ends the run where nothing is left.
func giveUp(tx *journal.Tx, why string) error {
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
