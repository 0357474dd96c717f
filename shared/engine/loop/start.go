package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// StartRequest is the part of a start that all inputs share: the user, the thread, and the way of the answer. The other
// part is the run's [Input].
type StartRequest struct {
	UID         string
	Agent       string        // name; empty: the assistant
	Origin      string        // the web origin of the request, or empty
	DelegatedBy *run.Delegate // another program's agent that acts for the user, or nil

	ThreadID string // empty: a new thread
	// Title is the title of ThreadID, which is created if it does not exist; empty: it must exist.
	Title string
	Opens bool // ThreadID is created if it does not exist, with a title from the user's message

	Key      string     // the Idempotency-Key, or empty
	BodyHash string     // hash of the request, compared if the key was used before
	Locale   run.Locale // the user's, as far as the client sent it
	Email    *string    // the user's verified address; "": not verified; nil: unknown
	Until    time.Time  // after this time another process continues; zero: the function's time
	Sink     unit.Sink  // receives updates while this process advances the run; nil: none
}

// Start stores a run and advances it until it needs the user or a time. For a key that was used before, it returns the
// run of that key and starts nothing. These errors mean that no run was stored:
//   - AuthError not_found: the thread or the terminal is not the user's, or this process does not know the agent or the
//     tool of a call.
//   - PolicyError too_many: the user has too many open approvals or has reached a limit.
//   - PolicyError idempotency_key_reused: the key was used with another body, or its run was deleted.
//   - PolicyError run_open, terminal_busy: the thread or the terminal is reserved for an open run; the cause is a
//     [run.OpenError].
//   - ValidationError: the input does not fit the agent or the tool, or exceeds a limit.
//
// Later errors are recorded in the run.
func (l *Loop) Start(ctx context.Context, req StartRequest, in Input) (*run.View, error) {
	ex, err := l.start(ctx, req, in)
	if err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}

// StartCall is [Loop.Start] for a call, and returns the call's state. The call is validated, approved, executed and
// recorded like a model's call, and survives the same crashes.
func (l *Loop) StartCall(ctx context.Context, req StartRequest, c Call) (*CallResult, error) {
	ex, err := l.start(ctx, req, c)
	if err != nil {
		return nil, err
	}
	return callResult(ctx, ex)
}

// start creates the run, or finds the run of the key, and advances it. It ends an overdue run that reserves the thread
// or the terminal, because readers already see that run as ended.
func (l *Loop) start(ctx context.Context, req StartRequest, in Input) (*unit.Execution, error) {
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex, err := l.startAs(ctx, id, req, in)
	if open := (*run.OpenError)(nil); errors.As(err, &open) && l.EndOverdue(ctx, open.RunID) {
		return l.startAs(ctx, id, req, in)
	}
	return ex, err
}

func (l *Loop) startAs(ctx context.Context, id string, req StartRequest, in Input) (*unit.Execution, error) {
	ex := l.NewExecution(id, req.Sink)
	ex.Until = req.Until
	err := begin(ctx, ex, req, in)
	ex.CountDropped(ctx)
	ex.EndTrace(err)
	return ex, err
}

func begin(ctx context.Context, ex *unit.Execution, req StartRequest, in Input) error {
	agent := ex.Agents.Get(req.Agent)
	if agent == nil {
		return fault.NotFound()
	}
	if err := in.check(ctx, ex, agent); err != nil {
		return err
	}
	ex.Mark = run.NewID(ex.Random)[:13]
	ex.Foresee(ctx, foresight)
	defer ex.DropAhead()
	if err := createRun(ctx, ex, req, in); err != nil {
		return err
	}
	effect.LeaveEarlier(ctx, ex)
	if st, _ := ex.Next(); st != run.StepElsewhere && ex.Run.Lease.Owner != ex.Owner {
		return nil // the key's first request advances the run, or has done so
	}
	return moveHere(ctx, ex)
}

// moveHere advances the run until it needs the user or a time. If another function advances it, moveHere publishes a
// resume.
func moveHere(ctx context.Context, ex *unit.Execution) error {
	if st, _ := ex.Next(); st == run.StepElsewhere {
		ex.Publish(ctx)
		return nil
	}
	_, err := advance(ctx, ex)
	// by another process, which may have taken over after this one paused for longer than its lease
	if unit.Held(err) {
		return nil
	}
	return err
}
