package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// Answer records the results of calls that wait for the client, all or none. It does not advance the run; the process
// that receives the resume does. Repeating the same answer returns the same result. Errors: AuthError not_found;
// ValidationError for a call that the run does not have, with the index in results as its field; PolicyError
// already_resolved for a different answer to an answered call; PolicyError not_waiting if the run or the call does not
// wait for its client.
func (l *Loop) Answer(ctx context.Context, uid, runID string, answers ...effect.CallAnswer) (*run.View, error) {
	ex := l.NewExecution(runID, nil)
	soon, cancel := unit.WithAnswerTimeout(ctx)
	defer cancel()
	if err := effect.RecordAnswers(soon, ex, uid, answers); err != nil {
		return nil, err
	}
	// also after a repeated answer: the first resume may be lost
	if st, _ := ex.Next(); st != run.StepDone && st != run.StepWait {
		ex.Publish(ctx)
	}
	return currentView(ctx, ex)
}

// AnswerAndGoOn is [Loop.Answer] and then advances the run, as [Loop.Start] does.
func (l *Loop) AnswerAndGoOn(ctx context.Context, uid, runID string, emit unit.Sink,
	answers ...effect.CallAnswer) (_ *run.View, err error) {
	ex := l.NewExecution(runID, emit)
	defer func() { ex.EndTrace(err) }()
	if err := effect.RecordAnswers(ctx, ex, uid, answers); err != nil {
		return nil, err
	}
	if err := moveHere(ctx, ex); err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}
