package loop

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Call is the [Input] of a run of one tool call. No model is called.
type Call struct {
	Prompt   string // the user's message in the thread, which describes the call
	Terminal string // the user's terminal, for an agent with OnTerminal

	Tool string
	Args json.RawMessage
	Own  bool // the user makes the call, so it needs no approval; the policy can still deny it
	// FilesBefore means that the conversation in which the model made the call had a file.
	FilesBefore bool

	Undoes  *Undo         // set if the call undoes an action; the call then needs the user's approval in any case
	Reopens *run.Reopened // set if the call was on an earlier card; the call then needs approval in any case
	Model   string        // the model that requested the call, for the record; empty for a user's own call

	completed approval.Completion
}

// Undo names the action that a call undoes.
type Undo struct {
	Action run.ActionRef
	Place  tool.Place // the place of that action
}

func (c Call) check(ctx context.Context, ex *unit.Execution, agent *registry.Agent) error {
	if ex.Toolbox.Tools[c.Tool] == nil {
		ex.Toolbox.Tools = ex.AwaitTools(ctx)
	}
	t := ex.Toolbox.Tools[c.Tool]
	if t == nil {
		return fault.NotFound()
	}
	if _, err := t.Normalize(c.Args); err != nil {
		return err
	}
	if err := checkTerminal(agent, c.Terminal); err != nil {
		return err
	}
	return checkNoSession(agent)
}

func (c Call) needs(ex *unit.Execution, req StartRequest) needs {
	n := needs{message: c.Prompt, terminal: c.Terminal, tool: ex.Toolbox.Tools[c.Tool], noModel: true}
	n.paths = slices.Clone(n.tool.Reads(tool.Scope{UID: req.UID, Terminal: c.Terminal}))
	if c.Undoes != nil {
		n.paths = append(n.paths, document.RunPath(c.Undoes.Action.RunID))
	}
	return n
}

func (c Call) stored(tx *unit.Tx) *run.Input {
	return seeThread(tx, &run.Input{Prompt: c.Prompt, SingleCall: true, FilesBefore: c.FilesBefore})
}

// begin adds the call as if it were the model's first answer.
func (c Call) begin(ctx context.Context, tx *unit.Tx, places approval.Places) error {
	at, err := places.Of(ctx, tx, tx.Ex.Toolbox.Tools[c.Tool])
	if err != nil {
		return err
	}
	at.Completed = c.completed
	call := run.ProposedCall{Turn: 1, Tool: c.Tool, UserInitiated: c.Own, Reopens: c.Reopens}
	if c.Undoes != nil {
		if err := takeBack(tx, c.Undoes, at); err != nil {
			return err
		}
		call.Compensates = &c.Undoes.Action
	}
	if err := tx.SetStatus(run.Planning); err != nil {
		return err
	}
	if err := tx.AddEvent(run.Event{Type: run.ModelAnswered, Turn: &run.Turn{Calls: 1, Model: c.Model}}); err != nil {
		return err
	}
	return propose(ctx, tx, call, c.Args, at)
}

// takeBack records the new run in the run whose action it undoes, in the same commit. It returns PolicyError stale_view
// if a different account is linked now.
func takeBack(tx *unit.Tx, u *Undo, at approval.CurrentPlace) error {
	if at.Err != nil {
		return at.Err
	}
	// the same account has another ID after it is linked again
	if u.Place.Label != at.Label || u.Place.Name != at.Name {
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was done with a different account from the one that is linked now. "+
				"Please link the earlier account again.")
	}
	path := document.RunPath(u.Action.RunID)
	var of run.Run
	if doc, err := tx.Doc(path, &of); err != nil || !doc.Exists() || of.UID != tx.Run.UID {
		return fault.OrNotFound(err)
	}
	if of.TakenBack == nil {
		of.TakenBack = map[string]string{}
	}
	of.TakenBack[u.Action.ActionID] = tx.Run.ID
	tx.Put(path, of)
	return nil
}

// CallResult is the state of a run of one call.
type CallResult struct {
	Run      *run.View
	Tool     string
	Args     json.RawMessage   // canonical, as the call is or would be executed
	Approval *run.ApprovalView // the approval that waits for the user, or nil
	Response model.Response    // the outcome of the call, once the run has ended
}

// Terminal reports whether the call has its outcome.
func (c *CallResult) Terminal() bool {
	return c.Run.Status == run.Completed || c.Run.Status == run.Failed
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

func callResult(ctx context.Context, ex *unit.Execution) (*CallResult, error) {
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
