package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// CallAnswer is what a client reports about a call that waits for it ([run.KindCall]).
type CallAnswer struct {
	ActionID string
	Result   json.RawMessage // of a call that was done, or what one returned before it failed
	Error    string          // of one that was not done; a sentence for the model
}

// codeNotAnswered is the code of a call that its client did not answer.
const codeNotAnswered fault.Code = "not_answered"

// Answer records what became of calls that wait for the client, all or none, and runs nothing: the run is moved by
// whoever receives the resume. The same answer again is answered as the first was. Errors: AuthError not_found;
// ValidationError for a call that the run does not have, which names its place in results; PolicyError already_resolved
// for another answer to an answered call, not_waiting where the run or the call does not wait for its client.
func (l *Loop) Answer(ctx context.Context, uid, runID string, answers ...CallAnswer) (*run.View, error) {
	ex := l.newExecution(runID, nil)
	soon, cancel := withAnswerTimeout(ctx)
	defer cancel()
	if err := ex.answer(soon, uid, answers); err != nil {
		return nil, err
	}
	if st, _ := ex.next(ex.state, ex.run, ex.now()); st != stepDone && st != stepWait { // again too: it may be lost
		ex.publish(ctx)
	}
	return ex.currentView(ctx)
}

// AnswerCalls is [Loop.Answer] for a caller that moves the run itself.
func (l *Loop) AnswerCalls(ctx context.Context, uid, runID string, answers ...CallAnswer) error {
	return l.newExecution(runID, nil).answer(ctx, uid, answers)
}

func (ex *execution) answer(ctx context.Context, uid string, answers []CallAnswer) error {
	if err := ex.loadOwned(ctx, uid); err != nil {
		return err
	}
	return ex.transition(ctx, func(tx *tx) error {
		tx.keepLease = true
		waiting := tx.waitingForClient()
		for i, given := range answers {
			a := tx.state.Action(given.ActionID)
			f := given.finished()
			again, err := checkAnswer(a, f, waiting, i)
			if err != nil {
				return err
			}
			if again {
				continue
			}
			if err := tx.finishWaiting(a, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkAnswer checks the answer with that number against the call and those that are waiting, and reports whether
// exactly this was answered before.
func checkAnswer(a *run.Action, f *run.Finished, waiting []*run.Action, number int) (again bool, err error) {
	switch {
	case a == nil && len(waiting) > 0:
		return false, fault.Invalid(fmt.Sprintf("results/%d/callId", number), "the run has no such call")
	case a == nil:
		return false, fault.New(fault.Policy, fault.CodeNotWaiting, "This run is not waiting for an answer.")
	case answered(a) && sameAnswer(a, f):
		return true, nil
	case answered(a):
		return false, fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"This call was answered before, in another way.")
	}
	if !slices.Contains(waiting, a) {
		return false, fault.New(fault.Policy, fault.CodeNotWaiting, "This call is not waiting for an answer.")
	}
	return false, nil
}

// waitingForClient returns the calls that may still be answered.
func (tx *tx) waitingForClient() (out []*run.Action) {
	if tx.state.End != nil || tx.state.Cancelled || !tx.now.Before(tx.run.Deadline) {
		return nil
	}
	for _, a := range tx.state.Actions {
		if a.WaitsForClient() && tx.now.Before(a.ExpiresAt) {
			out = append(out, a)
		}
	}
	return out
}

// answered reports whether the client has answered the call. One that the run ended or went on without has another
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

func (a CallAnswer) finished() *run.Finished {
	result, err := strictjson.Marshal(a.Result) // as the store keeps it, so that the same answer is the same bytes
	if err != nil {
		result = jsonString(string(a.Result))
	}
	if a.Error == "" {
		f := succeeded(result)
		return &f
	}
	f := failedWithoutEffect(fault.New(fault.Tool, "failed", "%s", a.Error))
	if a.Result != nil {
		f.Result = boundedResult(result)
	}
	return &f
}

// finishWaiting records what became of a call that waited for its client.
func (tx *tx) finishWaiting(a *run.Action, f *run.Finished) error {
	if err := tx.addEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: f}); err != nil {
		return err
	}
	if a.SideEffect {
		tx.addAudit(audit.Outcome, a, func(e *audit.Entry) { setErrorInfo(e, f.Error) })
	}
	return nil
}

// leaveUnanswered ends the wait for a client that did not answer. It may have carried the call out.
func (tx *tx) leaveUnanswered(a *run.Action, why string) error {
	f := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted,
		Error: run.ErrorInfoOf(fault.New(fault.Tool, codeNotAnswered, "%s; it is not known whether it was done.",
			why))}
	if a.SideEffect {
		f.Execution = run.UnknownState
	}
	return tx.finishWaiting(a, f)
}

// leaveToClient leaves a call that is allowed to the client.
func (ex *execution) leaveToClient(ctx context.Context, id string, t *tool.Tool) error {
	return ex.transition(ctx, func(tx *tx) error {
		if a := tx.state.Action(id); !a.Runnable() || tx.run.Lease.Held(ex.owner, tx.now) {
			return nil
		}
		return tx.leaveToClient(id, t)
	})
}

// leaveToClient leaves a call to the client. For an effect the policy is asked again, as before any other, and the
// audit says what it rests on.
func (tx *tx) leaveToClient(id string, t *tool.Tool) error {
	a := tx.state.Action(id)
	if stop, err := tx.recheckPolicy(a, t); stop || err != nil {
		return err
	}
	if a.SideEffect {
		tx.addAudit(audit.Intent, a, func(e *audit.Entry) { e.Decision = decidedBy(a) })
	}
	return tx.waitForAnswer(id, t)
}

// waitForAnswer has a call wait for the client, until its time or the run's is up or its user writes on: the thread
// names the run for that.
func (tx *tx) waitForAnswer(id string, t *tool.Tool) error {
	wait := &run.Wait{Kind: run.KindCall, ExpiresAt: tx.run.Deadline}
	ttl := cmp.Or(tx.limits().AnswerTTL, answerTTL)
	if t != nil && t.Wait > 0 {
		ttl = t.Wait
	}
	if at := tx.now.Add(ttl); at.Before(wait.ExpiresAt) {
		wait.ExpiresAt = at
	}
	if err := tx.addEvent(run.Event{Type: run.ActionWaits, ActionID: id, Wait: wait}); err != nil {
		return err
	}
	thread := tx.thread
	if thread == nil {
		thread = &run.Thread{}
		if _, err := tx.doc(document.ThreadPath(tx.run.ThreadID), thread); err != nil {
			return err
		}
	}
	if thread.AddWaiting(tx.run.ID) {
		tx.thread = thread
	}
	return nil
}

// leaveEarlierCalls ends the wait for the client in the earlier runs of a thread whose user writes on, and asks for
// them to be moved. The run that was started comes first: what cannot be done here is left to the calls' own time.
func (ex *execution) leaveEarlierCalls(ctx context.Context) {
	ctx, cancel := withAnswerTimeout(ctx)
	defer cancel()
	for _, id := range ex.earlier {
		if err := ex.leaveCallsOf(ctx, id); err != nil {
			ex.Log.WarnContext(ctx, "the calls of an earlier run go on waiting until their time is up", "runId", id,
				"error", err)
		}
	}
}

func (ex *execution) leaveCallsOf(ctx context.Context, runID string) error {
	other := ex.newExecution(runID, nil)
	if err := other.loadOwned(ctx, ex.run.UID); err != nil {
		return err
	}
	left := false
	err := other.transition(ctx, func(tx *tx) error {
		tx.keepLease, left = true, false
		for _, a := range tx.waitingForClient() {
			left = true
			if err := tx.leaveUnanswered(a, "The user went on without it"); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && left {
		other.publish(ctx)
	}
	return err
}
