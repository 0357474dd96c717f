package loop

import (
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// closeWhatIsOver closes expired approvals and calls that no longer run, and ends the run if it must end, in one
// commit.
func closeWhatIsOver(ctx context.Context, ex *unit.Execution) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		return applyClock(tx)
	})
}

// applyClock does everything that follows from the time, a cancel or the last answer. It closes expired approvals and
// calls that no longer run, and ends a run that must end.
func applyClock(tx *unit.Tx) error {
	st, _ := tx.Next()
	if st == run.StepExpire {
		for _, a := range run.Expired(tx.State, tx.Now) {
			if err := closeExpired(tx, a); err != nil {
				return err
			}
		}
	}
	if err := skipNotRun(tx); err != nil {
		return err
	}
	if st, _ = tx.Next(); st != run.StepEnd {
		return nil
	}
	return endRun(tx, tx.Ending())
}

// skipNotRun closes the calls of a turn that are not executed, because the budget of effects is used up, or because an
// earlier call in strict order was not done. The model receives the reason.
func skipNotRun(tx *unit.Tx) error {
	dear, over := tx.Terms().Unaffordable(tx.State)
	for _, a := range dear {
		if err := closeAction(tx, a, run.FailedEnd(over.Fault())); err != nil {
			return err
		}
	}
	rest, why := tx.Terms().NotRun(tx.State)
	for _, a := range rest {
		if err := closeAction(tx, a, run.FailedEnd(why)); err != nil {
			return err
		}
	}
	return nil
}

// closeExpired closes an overdue call. For an approval the call fails; for a client's answer only the wait ends, and
// the run continues.
func closeExpired(tx *unit.Tx, a *run.Action) error {
	if a.WaitsForClient() {
		return effect.LeaveUnanswered(tx, a, "This was not answered in time")
	}
	err := closeAction(tx, a, run.FailedEnd(run.ErrExpired))
	if err != nil || a.Kind != run.KindPlan {
		return err
	}
	return goOn(tx) // continue with an earlier plan, if this one was to change it
}

// endRun closes open calls, records how the run ended, and adds the last message.
func endRun(tx *unit.Tx, end *run.End) error {
	for _, a := range tx.State.Actions {
		if err := closeAction(tx, a, end); err != nil {
			return err
		}
	}
	out := *end
	out.Summary = strings.TrimSpace(run.OutcomeSummary(tx.Ex.Toolbox.Tools, tx.State) + "\n" + end.Summary)
	if out.Error != nil {
		p := *out.Error
		p.Message = out.Summary
		out.Error = &p
	}
	return recordEnd(tx, &out, run.FinalLength(tx.State, out.Summary))
}

// recordEnd records how the run ended. It adds the last message to the thread, and the contents that later runs see.
// The first words bytes of the message are the model's own.
func recordEnd(tx *unit.Tx, end *run.End, words int) error {
	end.Words = words
	if !tx.State.Input.Compress {
		end.Record = run.RecordLines(tx.Ex.Toolbox.Tools, tx.State)
		end.Moments = run.MomentsIn(tx.Ex.Toolbox.Tools, tx.State, end.Summary+"\n"+end.Record, tx.Now)
	}
	if err := tx.AddEvent(run.Event{Type: run.RunEnded, End: end}); err != nil {
		return err
	}
	if tx.State.Input.Window != nil {
		contents, recorded, err := conversation.Own(tx.State)
		if err != nil {
			return err
		}
		if f := end.Error; f != nil && f.Code == model.CodeRefused && len(tx.State.Turns) == 0 {
			// otherwise the service would refuse each later request of the thread
			if contents, err = model.WithoutFiles(contents, refusedFile); err != nil {
				return err
			}
		}
		tx.Kept = &unit.Kept{Contents: contents, Recorded: recorded}
	}
	return tx.AppendLastMessage(end, words)
}

// refusedFile is in the place of a file in a request that the model's service refused.
const refusedFile = "[A file that the user attached is left out: the request with it was refused.]"

// closeAction closes an action that will no longer be executed.
func closeAction(tx *unit.Tx, a *run.Action, end *run.End) error {
	waiting := a.Waiting()
	if waiting && a.Kind != run.KindCall {
		if err := approval.Close(tx, a.ApprovalID, closedStatus(end), ""); err != nil {
			return err
		}
	}
	if waiting && a.Kind == run.KindPlan {
		if err := approval.ClosePlan(tx, a.ApprovalID, plan.Expired, ""); err != nil {
			return err
		}
	}
	if !waiting && !a.Runnable() && !a.Unasked() || a.Kind == run.KindReview && waiting {
		return nil // it has its outcome already; an unknown outcome stays unknown
	}
	if a.WaitsForClient() && a.SideEffect {
		return effect.LeaveUnanswered(tx, a, "This was ended before it was answered")
	}
	if err := approval.Release(tx, a); err != nil {
		return err
	}
	p := &run.ErrorInfo{Class: fault.Policy, Code: run.CodeCancelled, Message: "It was not done."}
	if end.Error != nil {
		p = &run.ErrorInfo{Class: end.Error.Class, Code: end.Error.Code, Message: end.Error.Message}
	}
	finished := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted, Error: p}
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: finished}); err != nil {
		return err
	}
	if a.SideEffect {
		kind := audit.Cancelled
		if p.Code == fault.CodeExpired {
			kind = audit.Expired
		}
		tx.AddAudit(kind, a, func(e *audit.Entry) { unit.SetErrorInfo(e, p) })
	}
	return nil
}

func closedStatus(end *run.End) run.ApprovalStatus {
	if end.Error != nil && end.Error.Code == fault.CodeExpired {
		return run.ApprovalExpired
	}
	return run.ApprovalCancelled
}

// idle reports whether no process advances the run, so that it can end at once.
func idle(tx *unit.Tx) bool {
	if tx.Run.Lease.Held("", tx.Now) {
		return false
	}
	for _, a := range tx.State.Actions {
		if a.Status == run.ActionExecuting {
			return false
		}
	}
	return true
}
