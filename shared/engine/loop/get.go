package loop

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// Conversation returns the user's run in a form that a client can keep.
func (l *Loop) Conversation(ctx context.Context, uid, runID string) (*conversation.Conversation, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return nil, err
	}
	contents, _, err := conversation.Contents(ctx, ex, conversation.PresentModel(ex), "")
	if err != nil {
		return nil, err
	}
	c := &conversation.Conversation{Contents: contents, End: ex.State.End}
	if c.End != nil || len(ex.State.Open()) == 0 {
		return c, nil
	}
	responses := conversation.Responses(ex.State, len(ex.State.Turns))
	for i, a := range ex.State.Current() {
		call := conversation.TurnCall{Action: a, Model: ex.State.Turns[a.Turn-1].Model}
		if a.Terminal() {
			call.Response = &responses[i]
		}
		c.Calls = append(c.Calls, call)
	}
	return c, nil
}

// currentView returns the run at the present time. It already applies an expired approval or a passed deadline, which
// the sweep writes later. The execution must not advance the run afterwards.
func currentView(ctx context.Context, ex *unit.Execution) (*run.View, error) {
	st, _ := ex.Next()
	if dueByClock(ex) {
		tx, err := ex.Decide(ctx, applyClock)
		if err != nil {
			return nil, err
		}
		ex.State = tx.State
		st, _ = tx.Next()
	}
	v := ex.View()
	v.Moving = moving(st, ex.State)
	return v, nil
}

// dueByClock reports whether something follows from the time alone, such as an expired approval, and no process is
// writing it.
func dueByClock(ex *unit.Execution) bool {
	st, _ := ex.Next()
	return (st == run.StepEnd || st == run.StepExpire || st == run.StepSkip) && !ex.Run.Lease.Held(ex.Owner, ex.Now())
}

// moving reports whether a run that needs this step continues on its own. An ended run does not, even if created things
// must still be removed.
func moving(st run.Step, s *run.State) bool { return s.End == nil && st != run.StepWait }

// Usage returns the run's model usage so far.
func (l *Loop) Usage(ctx context.Context, uid, runID string) (run.RunUsage, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return run.RunUsage{}, err
	}
	return run.RunUsage{Calls: ex.State.ModelCalls, Tokens: ex.State.Tokens}, nil
}

// Get returns the user's run at the present time (see currentView), and its stored events. It returns AuthError
// unauthenticated for a disabled user. It takes one round trip, and one more in these cases: older events are in other
// documents, the run waits for more than its first approval, or the run has ended in a thread that an earlier run
// started.
func (l *Loop) Get(ctx context.Context, uid, runID string) (*run.View, []run.Event, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadForReader(ctx, uid); err != nil {
		return nil, nil, err
	}
	v, err := currentView(ctx, ex)
	return v, ex.Events, err
}

// Attachment returns a file of the user's run. number counts the files of the prompt from 1, or is the number of a file
// of an answer. The run, and with it the owner, is read before the file.
func (l *Loop) Attachment(ctx context.Context, uid, runID string, number int) (*attachment.File, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadForReader(ctx, uid); err != nil {
		return nil, err
	}
	stored, ok := attachment.Numbered(ex.State.Input.Files, ex.State.Made, number)
	if !ok {
		return nil, fault.NotFound()
	}
	f, err := ex.File(ctx, stored.Ref(ex.ID))
	if errors.Is(err, attachment.ErrGone) {
		return nil, fault.NotFound()
	}
	return f, err
}
