package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// CompensationRun returns the ID of the run that is to undo an action of the user. before is the ID of the previous run
// for the same action, which failed, or empty for the first one. Simultaneous requests therefore start only one run.
func CompensationRun(uid, actionID, before string) string {
	return run.KeyedRunID(uid, compensationKey(actionID, before))
}

func compensationKey(actionID, before string) string { return "compensate:" + actionID + ":" + before }

// Compensate starts a run that undoes an action of the user's run, in the same conversation, and requests the user's
// approval. If such a run is in progress or has already undone the action, Compensate returns that run. Errors: those
// of [Loop.Start]; AuthError not_found for another user's run;
// PolicyError not_applicable for an action that was not done or cannot be undone; PolicyError stale_view if a different
// account is linked now.
func Compensate(ctx context.Context, l *Loop, of run.ActionRef, req StartRequest) (*run.View, error) {
	ex := l.NewExecution(of.RunID, nil)
	if err := ex.LoadOwned(ctx, req.UID); err != nil {
		return nil, err
	}
	a := ex.State.Action(of.ActionID)
	if a == nil {
		return nil, fault.NotFound()
	}
	c := compensationOf(l.Tools, a)
	if c == nil {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "This cannot be undone here.")
	}
	args, err := strictjson.Marshal(c.Args)
	if err != nil {
		return nil, err
	}
	before, far := ex.Run.TakenBack[a.ID], run.Compensation{Status: run.Offered}
	if v, err := compensating(ctx, l, req.UID, before, &far); err != nil || far.Status != run.Offered {
		return v, err
	}
	if isGone(ctx, l, ex.Run, a, c) {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "%s.", c.Gone)
	}
	req.ThreadID, req.Key, req.BodyHash = ex.Run.ThreadID, compensationKey(a.ID, before), a.ID
	return l.Start(ctx, req, Call{Prompt: c.Title + ".", Tool: c.Tool, Args: args, Own: true,
		Undoes: &Undo{Action: of, Place: a.Place}})
}

// askTime is how long a provider may take to say whether an effect still exists.
const askTime = 5 * time.Second

// isGone reports whether the provider says that nothing is left to undo. It is false if the provider does not tell, or
// if another account is linked now than the one in which the action ran.
func isGone(ctx context.Context, l *Loop, r run.Run, a *run.Action, c *tool.Compensation) bool {
	t := l.Tools[c.Tool]
	args, err := strictjson.Marshal(c.Args)
	if err == nil {
		args, err = t.Normalize(args)
	}
	if err != nil || c.Gone == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	in, err := t.Place(ctx, r.Scope())
	// an account that is linked again has another ID
	if err != nil || in.Label != a.Place.Label || in.Name != a.Place.Name {
		return false
	}
	out, err := t.Reconcile(ctx, r.ToolCall(a.ID, args, in))
	return err == nil && out.Verdict == tool.Done
}

// compensationOf returns the call that undoes the action, or nil.
func compensationOf(tools tool.Set, a *run.Action) *tool.Compensation {
	t := tools[a.Tool]
	if t == nil || a.Status != run.ActionCompleted || !a.SideEffect {
		return nil
	}
	c := t.Compensate(a.Args, a.Result)
	if c == nil || tools[c.Tool] == nil {
		return nil
	}
	return c
}

// compensating returns the run with the ID, and updates the compensation's status from it. It returns nil if there is
// no such run.
func compensating(ctx context.Context, l *Loop, uid, id string, c *run.Compensation) (*run.View, error) {
	if id == "" {
		return nil, nil
	}
	ex := l.NewExecution(id, nil)
	err := ex.LoadOwned(ctx, uid)
	switch {
	case fault.Is(err, fault.Auth, fault.CodeNotFound): // it was deleted
		return nil, nil
	case err != nil:
		return nil, err
	}
	v, err := currentView(ctx, ex)
	if err == nil {
		c.Follow(ex.State)
	}
	return v, err
}

// AddRecords adds the records of its actions to the view of a user's run (run.View.AddRecords), and the progress of
// their compensations. events are all of the run's events. With ask it asks the provider whether what could be undone
// still exists.
func AddRecords(ctx context.Context, l *Loop, uid string, v *run.View, events []run.Event, ask bool) error {
	v.AddRecords(l.Tools, events)
	s, err := run.Fold(events)
	if err != nil {
		return err
	}
	for _, shown := range v.Actions {
		if shown.Record == nil || shown.Record.Compensation == nil {
			continue
		}
		far := shown.Record.Compensation
		if _, err := compensating(ctx, l, uid, far.RunID, far); err != nil {
			return err
		}
		a := s.Action(shown.ActionID)
		if c := compensationOf(l.Tools, a); ask && c != nil && far.Status == run.Offered &&
			isGone(ctx, l, run.Run{ID: v.RunID, UID: uid, ThreadID: v.ThreadID, Agent: v.Agent}, a, c) {
			far.Status, far.Title = run.Gone, c.Gone
		}
	}
	return nil
}
