package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Call is a tool call that forms a whole run. No model is called.
type Call struct {
	Tool string
	Args json.RawMessage
	Own  bool // the user makes the call, so it needs no approval; the policy can still deny it

	Compensates *run.ActionRef // the action that the call undoes; the call then needs the user's approval in any case
	In          tool.Place     // with Compensates: the place of that action

	Model string // the model that requested the call, for the record; empty for a user's own call
}

// CallResult is the state of a run of one call.
type CallResult struct {
	Run      *run.View
	Tool     string
	Args     json.RawMessage   // canonical, as the call is or would be carried out
	Approval *run.ApprovalView // the approval that waits for the user, or nil
	Response model.Response    // the outcome of the call, once the run has ended
}

// Terminal reports whether the call has its outcome.
func (c *CallResult) Terminal() bool {
	return c.Run.Status == run.Completed || c.Run.Status == run.Failed
}

// StartCall stores a run of req.Call and advances it as far as it goes on its own. The call is validated, approved,
// carried out and recorded like a model's call, and survives the same crashes. Errors before the run is stored: those
// of [Loop.Start], AuthError not_found for a tool that does not exist, ValidationError for arguments that do not fit.
func (l *Loop) StartCall(ctx context.Context, req StartRequest) (*CallResult, error) {
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex := l.NewExecution(id, nil)
	if ex.Tools[req.Call.Tool] == nil {
		ex.Tools = l.AwaitTools(ctx)
	}
	t := ex.Tools[req.Call.Tool]
	if t == nil {
		return nil, fault.NotFound()
	}
	if _, err := t.Normalize(req.Call.Args); err != nil {
		return nil, err
	}
	if err := start(ctx, ex, req); err != nil {
		return nil, err
	}
	return callResult(ctx, ex)
}

// CallResult returns the state of a run that [Loop.StartCall] started. It returns AuthError not_found for any other
// run.
func (l *Loop) CallResult(ctx context.Context, uid, runID string) (*CallResult, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadOwned(ctx, uid); err != nil {
		return nil, err
	}
	if !ex.State.Input.SingleCall {
		return nil, fault.NotFound()
	}
	return callResult(ctx, ex)
}

func callResult(ctx context.Context, ex *journal.Execution) (*CallResult, error) {
	v, err := currentView(ctx, ex)
	if err != nil {
		return nil, err
	}
	c := &CallResult{Run: v}
	for _, a := range ex.State.Current() {
		c.Tool, c.Args = a.Tool, a.Args
		if ex.State.End != nil {
			c.Response = conversation.Response(a)
		}
	}
	if ex.State.End != nil {
		return c, nil
	}
	for _, a := range ex.State.Open() {
		if a.WaitsForClient() {
			continue
		}
		path := document.ApprovalPath(a.ApprovalID)
		if _, ok := ex.Docs[path]; !ok {
			if err := ex.Read(ctx, path); err != nil {
				return nil, err
			}
		}
		var ap run.Approval
		if err := document.Decode(ex.Docs[path], &ap); err != nil {
			return nil, err
		}
		v := ap.View()
		c.Approval = &v
	}
	return c, nil
}
