package effect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// CallAnswer is a client's report about a call that waits for it ([run.KindCall]).
type CallAnswer struct {
	ActionID string
	Result   json.RawMessage // of a completed call, or the result before a failure
	Error    string          // of a call that was not done: a sentence for the model
}

// codeNotAnswered is the error code of a call that its client did not answer.
const codeNotAnswered fault.Code = "not_answered"

// RecordAnswers records a client's reports about calls of the user's run, all or none. It does not advance the run. It
// returns the errors of loop.Loop.Answer.
func RecordAnswers(ctx context.Context, ex *unit.Execution, uid string, answers []CallAnswer) error {
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return err
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		tx.KeepLease = true
		waiting := waitingForClient(tx)
		for i, given := range answers {
			a := tx.State.Action(given.ActionID)
			f := given.Finished()
			again, err := checkAnswer(a, f, waiting, i)
			if err != nil {
				return err
			}
			if again {
				continue
			}
			if err := finishWaiting(tx, a, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkAnswer checks the answer at index number against its call and the waiting calls. again is true if the same
// answer was recorded before.
func checkAnswer(a *run.Action, f *run.Finished, waiting []*run.Action, number int) (again bool, err error) {
	switch {
	case a == nil && len(waiting) > 0:
		return false, fault.Invalid(fmt.Sprintf("results/%d/callId", number), "the run has no such call")
	case a == nil:
		return false, fault.New(fault.Policy, fault.CodeNotWaiting, "Nothing here waits for an answer.")
	case answered(a) && sameAnswer(a, f):
		return true, nil
	case answered(a):
		return false, fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"This call already has a different answer.")
	}
	if !slices.Contains(waiting, a) {
		return false, fault.New(fault.Policy, fault.CodeNotWaiting, "This call is not waiting for an answer.")
	}
	return false, nil
}

// waitingForClient returns the calls that the client may still answer.
func waitingForClient(tx *unit.Tx) (out []*run.Action) {
	if tx.State.End != nil || tx.State.Cancelled || !tx.Now.Before(tx.Run.Deadline) {
		return nil
	}
	for _, a := range tx.State.Actions {
		if a.WaitsForClient() && tx.Now.Before(a.ExpiresAt) {
			out = append(out, a)
		}
	}
	return out
}

// answered reports whether the client has answered the call. A call that the run ended or abandoned has another
// execution state.
func answered(a *run.Action) bool {
	return a.Kind == run.KindCall && (a.Execution == run.Succeeded || a.Execution == run.FailedKnown)
}

func sameAnswer(a *run.Action, f *run.Finished) bool {
	if a.Execution != f.Execution || !bytes.Equal(a.Result, f.Result) {
		return false
	}
	return f.Error == nil || a.Error != nil && *a.Error == *f.Error
}

// Finished returns the outcome that the answer is recorded as.
func (a CallAnswer) Finished() *run.Finished {
	result, err := strictjson.Marshal(a.Result) // in the stored form, so that equal answers have equal bytes
	if err != nil {
		result = strictjson.Text(string(a.Result))
	}
	if a.Error == "" {
		f := Succeeded(result)
		return &f
	}
	f := failed(fault.New(fault.Tool, "failed", "%s", a.Error))
	if a.Result != nil {
		setResult(&f, result)
	}
	return &f
}

// finishWaiting records the outcome of a call that waited for its client.
func finishWaiting(tx *unit.Tx, a *run.Action, f *run.Finished) error {
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	if a.SideEffect {
		tx.AddAudit(audit.Outcome, a, func(e *audit.Entry) { unit.SetErrorInfo(e, f.Error) })
	}
	return nil
}

// TakeAnswer records that the model's call gives the run's typed answer. The call needs no work, so this is part of the
// transition that proposes it.
func TakeAnswer(tx *unit.Tx, a *run.Action) error {
	f := Succeeded(tool.AnswerTaken)
	return finishWaiting(tx, a, &f)
}

// TakeCall records a call of a session that the loop handles itself. why is the reason why the call does not count, or
// nil.
func TakeCall(tx *unit.Tx, a *run.Action, why error) error {
	f := Succeeded(tool.AnswerTaken)
	if why != nil {
		f = failed(why)
	}
	return finishWaiting(tx, a, &f)
}

// LeaveUnanswered ends the wait for a client that did not answer. The client may have executed the call.
func LeaveUnanswered(tx *unit.Tx, a *run.Action, why string) error {
	f := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted,
		Error: run.ErrorInfoOf(fault.New(fault.Tool, codeNotAnswered, "%s; it is not known whether it was done.",
			why))}
	if a.SideEffect {
		f.Execution = run.UnknownState
	}
	return finishWaiting(tx, a, f)
}

// leaveToClient gives an allowed call to the client.
func leaveToClient(ctx context.Context, ex *unit.Execution, id string, t *tool.Tool) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if a := tx.State.Action(id); !a.Runnable() || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		return LeaveToClient(tx, id, t)
	})
}

// LeaveToClient gives a call to the client. For an effect, it evaluates the policy again and adds the intent to the
// audit log.
func LeaveToClient(tx *unit.Tx, id string, t *tool.Tool) error {
	a := tx.State.Action(id)
	if _, stop, err := recheckPolicy(tx, a, t); stop || err != nil {
		return err
	}
	if a.SideEffect {
		tx.AddAudit(audit.Intent, a, func(e *audit.Entry) { e.Decision = decidedBy(a) })
	}
	return approval.WaitForAnswer(tx, id, t)
}

// LeaveEarlier ends the wait for the client in earlier runs of a thread, because its user continued without them. It
// asks for these runs to be advanced. A failure is only logged: those calls then wait until they expire.
func LeaveEarlier(ctx context.Context, ex *unit.Execution) {
	ctx, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	for _, id := range ex.Earlier {
		if err := leaveCallsOf(ctx, ex, id); err != nil {
			ex.Log.WarnContext(ctx, "the calls of an earlier run keep waiting until their time is up", "runId", id,
				"error", err)
		}
	}
}

func leaveCallsOf(ctx context.Context, ex *unit.Execution, runID string) error {
	other := ex.NewExecution(runID, nil)
	if err := other.LoadOwned(ctx, ex.Run.UID); err != nil {
		return err
	}
	left := false
	err := other.Transition(ctx, func(tx *unit.Tx) error {
		tx.KeepLease, left = true, false
		for _, a := range waitingForClient(tx) {
			left = true
			if err := LeaveUnanswered(tx, a, "The user continued without it"); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && left {
		other.Publish(ctx)
	}
	return err
}
