package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// CompensationRun returns the id of the run that is to take back an action of the user's after the run before, which
// has come to nothing; before is empty for the first one. So whoever asks at the same moment begins one run.
func CompensationRun(uid, actionID, before string) string {
	return run.KeyedRunID(uid, compensationKey(actionID, before))
}

func compensationKey(actionID, before string) string { return "compensate:" + actionID + ":" + before }

// Compensate begins a run that takes back what an action of the user's run has done, in the same conversation, and asks
// them about it. Where one is under way or has done it already, it returns that. req has what the request says of its
// user. Errors: those of [Loop.StartCall]; AuthError not_found for another's run, PolicyError not_applicable for what
// was not done or cannot be taken back, stale_view where another account is linked by now.
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
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "This cannot be taken back here.")
	}
	args, err := strictjson.Marshal(c.Args)
	if err != nil {
		return nil, err
	}
	before, far := ex.Run.TakenBack[a.ID], run.Compensation{Status: run.Offered}
	if v, err := compensating(ctx, l, req.UID, before, &far); err != nil || far.Status != run.Offered {
		return v, err
	}
	req.ThreadID, req.Prompt = ex.Run.ThreadID, c.Title+"."
	req.Key, req.BodyHash = compensationKey(a.ID, before), a.ID
	req.Call = &Call{Tool: c.Tool, Args: args, Own: true, Compensates: &of, In: a.Place}
	called, err := l.StartCall(ctx, req)
	if err != nil {
		return nil, err
	}
	return called.Run, nil
}

// compensationOf returns how what the action has done can be taken back, or nil.
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

// compensating returns the run with the id, and tells the compensation how far that is. It returns nil if there is no
// such run.
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

// AddRecords adds to a run of the user's what is on record of its actions (run.View.AddRecords), and how far what takes
// them back is. events are the run's, all of them.
func AddRecords(ctx context.Context, l *Loop, uid string, v *run.View, events []run.Event) error {
	v.AddRecords(l.Tools, events)
	for _, a := range v.Actions {
		if a.Record == nil || a.Record.Compensation == nil {
			continue
		}
		if _, err := compensating(ctx, l, uid, a.Record.Compensation.RunID, a.Record.Compensation); err != nil {
			return err
		}
	}
	return nil
}
