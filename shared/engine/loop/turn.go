package loop

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// callModel calls the model once. It commits the answer with everything that follows from it: the validated calls, the
// approvals that they need, or the end. The answer is stored before anything acts on it, and never requested again.
func callModel(ctx context.Context, ex *unit.Execution) error {
	ex.Toolbox.Refresh(ctx, ex.Run.Agent)
	if err := ex.Claim(ctx, ex.Limits().ModelTimeout); err != nil {
		return err
	}
	if st, _ := ex.Next(); st != run.StepCallModel {
		return nil
	}
	if a := ex.TakeAhead(); a != nil {
		return answered(ctx, ex, a.Request, func(ctx context.Context) (*model.Reply, error) {
			return a.Use(withThoughts(ctx, ex, a.Request), deltaSink(ex))
		})
	}
	if over, err := overBudget(ctx, ex); over || err != nil {
		return err
	}
	req, err := request(ctx, ex)
	if err != nil {
		return notAsked(ctx, ex, err)
	}
	if ex.State.Input.Compress {
		return compressByHand(ctx, ex, req)
	}
	switch made, err := makeRoom(ctx, ex, req); {
	case fault.Is(err, fault.Model, run.CodeContextFull):
		return modelFailed(ctx, ex, err)
	case made || err != nil:
		return err // the next step asks the model, with the new context
	}
	if over, err := overRunBudget(ctx, ex, req); over || err != nil {
		return err
	}
	return answered(ctx, ex, req, func(ctx context.Context) (*model.Reply, error) {
		return askModel(withThoughts(ctx, ex, req), ex, req, deltaSink(ex))
	})
}

// brokenOff follows the streamed text of an answer that does not count. Streamed text cannot be taken back.
const brokenOff = "\n\n[This answer is incomplete and does not count.]\n\n"

// answered waits for the model's answer to the request, and commits it.
func answered(ctx context.Context, ex *unit.Execution, req model.Request,
	answer func(context.Context) (*model.Reply, error)) error {
	turn := len(ex.State.Turns) + 1
	reply, err := holding(ctx, ex, answer)
	switch {
	case errors.Is(err, errHandOver):
		return err
	case err != nil:
		if at, ok := nextAttempt(ex, err); ok {
			return postponeModel(ctx, ex, at, err)
		}
		return modelFailed(ctx, ex, err)
	}
	if reply.Correction != "" && reply.Text != "" && !ex.Unread {
		ex.Notify(unit.Update{Delta: brokenOff})
	}
	return commitTurn(ctx, ex, turn, req, reply)
}

// commitTurn commits the model's answer as the run's turn with this number. If a call of the answer can start at once,
// the commit starts the call, and commitTurn carries it out.
func commitTurn(ctx context.Context, ex *unit.Execution, turn int, req model.Request, reply *model.Reply) error {
	kept, err := effect.KeepFiles(ctx, ex, reply.Files)
	if err != nil {
		return err
	}
	called := toolsOf(ex, reply.Calls)
	approval.LookAgain(ctx, ex, called...)
	places := approval.AskPlaces(ctx, ex, ex.Run.Scope(), called...)
	completed := approval.CompleteCalls(ctx, ex, turn, reply.Calls)
	intent, started := run.Started{Owner: ex.Owner, Attempt: 1}, ""
	err = ex.Transition(ctx, func(tx *unit.Tx) error {
		started = effect.ActionOf(tx, intent) // set already if the commit's answer was lost
		if len(tx.State.Turns) != turn-1 || tx.Run.Lease.Owner != ex.Owner {
			return nil // stored already, or another process has taken the run over
		}
		if st, _ := tx.Next(); st != run.StepCallModel {
			return nil // cancelled or out of time in the meantime: the answer no longer matters
		}
		turn := newTurn(ex, req, reply)
		err := keepFiles(tx, kept, turn, reply)
		if err == nil {
			err = recordTurn(ctx, tx, turn, reply, places, completed)
		}
		if err != nil {
			return err
		}
		started, err = effect.StartInSameCommit(ctx, tx, intent)
		return err
	})
	if fault.Is(err, fault.Validation, unit.CodeTooLarge) {
		return modelFailed(ctx, ex,
			fault.New(fault.Model, unit.CodeTooLarge, "The model's answer is too large to be stored.").Because(err))
	}
	if err != nil || started == "" {
		return err
	}
	return effect.CallTool(ctx, ex, ex.Toolbox.Tools[ex.State.Action(started).Tool], started)
}

// toolsOf returns the tools of the calls; a tool that the run may not call is nil.
func toolsOf(ex *unit.Execution, calls []model.Call) (called []*tool.Tool) {
	for _, c := range calls {
		called = append(called, ex.ToolOf(c.Name, false))
	}
	return called
}

// notAsked ends a run whose request cannot be built. If the store failed, it returns the error instead, and the run is
// unchanged.
func notAsked(ctx context.Context, ex *unit.Execution, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code == fault.CodeStoreUnavailable {
		return err
	}
	return modelFailed(ctx, ex, err)
}

// modelFailed ends the run. Earlier effects stay, and the summary names them. A run that has had an effect completes:
// a caller could take a failed run for one that did nothing, and repeat it.
func modelFailed(ctx context.Context, ex *unit.Execution, err error) error {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	ex.Log.WarnContext(ctx, "the model gave no usable answer", "runId", ex.ID, "error", err)
	f := fault.As(err)
	if f.Class != fault.Model {
		f = fault.New(fault.Model, "failed", "The model could not be called.").Because(err)
	}
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if st, _ := tx.Next(); st != run.StepCallModel || tx.Run.Lease.Owner != ex.Owner {
			return nil
		}
		tx.UnrecordedCalls = 1
		if run.HadEffect(tx.State) {
			return endRun(tx, run.UnansweredEnd(f))
		}
		return endRun(tx, run.FailedEnd(f))
	})
}

// newTurn returns the recorded form of the reply.
func newTurn(ex *unit.Execution, req model.Request, r *model.Reply) *run.Turn {
	turn := &run.Turn{Model: r.Model, Fallback: r.Backup, Content: r.Content,
		Text:   clip.Text(r.Text, run.MaxMessageText),
		Finish: r.Finish, Correction: r.Correction, Calls: min(len(r.Calls), model.MaxCalls), Usage: r.Usage,
		Estimated: estimateTokens(req, r)}
	if r.Correction != "" {
		turn.Calls = 0
	}
	if b := ex.Limits().Budget; len(b.Prices) > 0 {
		turn.Cost = b.Cost(answeredName(ex, r), r.Usage, turn.Estimated)
	}
	if in := ex.State.Input; in.Window != nil || in.Model != "" || len(ex.Fallbacks) > 0 {
		turn.By = conversation.Signs(ex, answeredBy(ex, r))
	}
	return turn
}

// recordTurn adds the model's answer to the run, with the first [model.MaxCalls] of its calls. The others are not run,
// and the next request says so.
func recordTurn(ctx context.Context, tx *unit.Tx, turn *run.Turn, r *model.Reply, places approval.Places,
	completed []approval.Completion) error {
	if err := tx.AddEvent(run.Event{Type: run.ModelAnswered, Turn: turn}); err != nil {
		return err
	}
	switch {
	case r.Correction != "":
		return nil // the model gets the correction, within its limit of calls
	case len(r.Calls) == 0 && tx.State.Input.Answer == nil && tx.State.Plan == nil:
		return endWithAnswer(tx, turn, r)
	}
	session := inSession{tx: tx, calls: len(r.Calls)}
	for i, c := range r.Calls[:turn.Calls] {
		at, err := places.Of(ctx, tx, tx.ToolIn(c.Name, false))
		if err != nil {
			return err
		}
		at.Completed = completed[i]
		call := run.ProposedCall{Turn: len(tx.State.Turns), Index: i, CallID: c.ID, Tool: c.Name}
		if tx.State.Plan != nil {
			err = session.propose(ctx, call, c.Args, at)
		} else {
			err = propose(ctx, tx, call, c.Args, at)
		}
		if err != nil {
			return err
		}
	}
	if err := session.proposeRevision(ctx); err != nil {
		return err
	}
	if err := skipNotRun(tx); err != nil || tx.State.Input.Answer == nil && tx.State.Plan == nil {
		return err
	}
	if st, _ := tx.Next(); st != run.StepEnd {
		return nil
	}
	return endRun(tx, tx.Ending()) // the answer needs no further step or commit
}

// endWithAnswer ends the run with the model's text. If the text may make false claims, the server's own summary
// follows.
func endWithAnswer(tx *unit.Tx, turn *run.Turn, r *model.Reply) error {
	note := ""
	for _, n := range []string{noteOf(r, turn), run.VerifiedSummary(tx.Ex.Toolbox.Tools, tx.State, r.Text)} {
		if n != "" {
			note += "\n\n" + n
		}
	}
	if r.Text == "" {
		note = strings.TrimLeft(note, "\n")
	}
	text := clip.Text(r.Text, run.MaxMessageText-len(note))
	end := &run.End{Status: run.Completed, Summary: text + note}
	return recordEnd(tx, end, len(text))
}
