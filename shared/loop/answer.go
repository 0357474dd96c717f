package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// Answer records what became of calls that wait for the client, all or none, and runs nothing: the run is moved by
// whoever receives the resume. The same answer again is answered as the first was. Errors: AuthError not_found;
// ValidationError for a call that the run does not have, which names its place in results; PolicyError already_resolved
// for another answer to an answered call, not_waiting where the run or the call does not wait for its client.
func (l *Loop) Answer(ctx context.Context, uid, runID string, answers ...effect.CallAnswer) (*run.View, error) {
	ex := l.NewExecution(runID, nil)
	soon, cancel := journal.WithAnswerTimeout(ctx)
	defer cancel()
	if err := effect.RecordAnswers(soon, ex, uid, answers); err != nil {
		return nil, err
	}
	if st, _ := ex.Next(); st != run.StepDone && st != run.StepWait { // again too: it may be lost
		ex.Publish(ctx)
	}
	return currentView(ctx, ex)
}

// AnswerAndGoOn is [Loop.Answer] that moves the run, as [Loop.Start] does.
func (l *Loop) AnswerAndGoOn(ctx context.Context, uid, runID string, emit journal.Sink,
	answers ...effect.CallAnswer) (_ *run.View, err error) {
	ex := l.NewExecution(runID, emit)
	defer func() { journal.EndTrace(ex, err) }()
	if err := effect.RecordAnswers(ctx, ex, uid, answers); err != nil {
		return nil, err
	}
	if err := moveHere(ctx, ex); err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}
