package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/run"
)

// Call is a call of a tool that is a whole run: no model is called.
type Call struct {
	Tool string
	Args json.RawMessage
	Own  bool // the user makes it themselves, so it needs no approval; what the policy denies stays denied

	Model string // the model that asked for it, for the record; empty for a call of the user's own
}

// CallResult is a run of one call as its caller sees it.
type CallResult struct {
	Run      *run.View
	Tool     string
	Args     json.RawMessage   // canonical, as the call is or would be carried out
	Approval *run.ApprovalView // the approval that waits for the user, or nil
	Response model.Response    // what became of the call, once the run has ended
}

// Terminal reports whether the call has its outcome.
func (c *CallResult) Terminal() bool {
	return c.Run.Status == run.Completed || c.Run.Status == run.Failed
}

// StartCall stores a run of req.Call and moves it as far as it goes alone. The call is validated, approved, carried out
// and recorded like a call of the model, and survives the same crashes. Errors before the run is stored: those of
// [Loop.Start], AuthError not_found for a tool that does not exist, ValidationError for arguments that do not fit.
func (l *Loop) StartCall(ctx context.Context, req StartRequest) (*CallResult, error) {
	t := l.Tools[req.Call.Tool]
	if t == nil {
		return nil, fault.NotFound()
	}
	if _, err := t.Normalize(req.Call.Args); err != nil {
		return nil, err
	}
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex := l.newExecution(id, nil)
	if err := ex.start(ctx, req); err != nil {
		return nil, err
	}
	return ex.callResult(ctx)
}

// CallResult returns a run that [Loop.StartCall] started. The error is AuthError not_found for every other run.
func (l *Loop) CallResult(ctx context.Context, uid, runID string) (*CallResult, error) {
	ex := l.newExecution(runID, nil)
	if err := ex.loadOwned(ctx, uid); err != nil {
		return nil, err
	}
	if !ex.state.Input.SingleCall {
		return nil, fault.NotFound()
	}
	return ex.callResult(ctx)
}

func (ex *execution) callResult(ctx context.Context) (*CallResult, error) {
	v, err := ex.currentView(ctx)
	if err != nil {
		return nil, err
	}
	c := &CallResult{Run: v}
	for _, a := range ex.state.Current() {
		c.Tool, c.Args = a.Tool, a.Args
		if ex.state.End != nil {
			c.Response = ex.response(a)
		}
	}
	if ex.state.End != nil {
		return c, nil
	}
	for _, a := range ex.state.Open() {
		if a.WaitsForClient() {
			continue
		}
		path := document.ApprovalPath(a.ApprovalID)
		if _, ok := ex.docs[path]; !ok {
			if err := ex.read(ctx, path); err != nil {
				return nil, err
			}
		}
		var ap run.Approval
		if err := document.Decode(ex.docs[path], &ap); err != nil {
			return nil, err
		}
		v := ap.View()
		c.Approval = &v
	}
	return c, nil
}

// placementOfCall returns where the call that the run starts with would act.
func (ex *execution) placementOfCall(ctx context.Context, req StartRequest) (at placement) {
	if req.Call != nil {
		at.Place, at.err = ex.Tools[req.Call.Tool].Place(ctx, req.UID)
	}
	return at
}

// addCall adds the call as if it were the model's first answer.
func (tx *tx) addCall(c *Call, at placement) error {
	if err := tx.setStatus(run.Planning); err != nil {
		return err
	}
	if err := tx.addEvent(run.Event{Type: run.ModelAnswered,
		Turn: &run.Turn{Calls: 1, Model: c.Model}}); err != nil {
		return err
	}
	return tx.validateCall(run.ProposedCall{Turn: 1, Tool: c.Tool, UserInitiated: c.Own}, c.Args, at)
}

// singleCallEnd returns the end of a run of one call: what became of it.
func (l *Loop) singleCallEnd(s *run.State) *run.End {
	switch a := s.Current()[0]; {
	case a.Status == run.ActionCompleted:
		return &run.End{Status: run.Completed, Summary: "Done."}
	case a.Status == run.ActionRejected:
		return l.rejectedEnd(s, agents.RejectCompletes)
	default:
		return &run.End{Status: run.Failed, Summary: a.Error.Message, Error: a.Error}
	}
}
