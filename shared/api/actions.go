package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/tool"
)

// Actions are the operator's declared actions (shared/action).
type Actions interface {
	// Tool is the action as a tool, by the action's own name; nil where there is no such action.
	Tool(name string) *tool.Tool
	// Tools are all of them.
	Tools() tool.Set
	// Unbound are the names of those that nobody carries out.
	Unbound() []string
	// Execute does one that changes nothing.
	Execute(ctx context.Context, name string, c tool.Call) (json.RawMessage, error)
}

// actionAnswer is what became of an action. One with a side effect has a run: while another process is still at it, there is
// no result yet, and the run tells.
type actionAnswer struct {
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	RunID  string          `json:"runId,omitempty"`
	Status agent.RunStatus `json:"status,omitempty"`
}

// postAction does a declared action for the user who calls it. Nobody is asked, because it is the user's own doing.
func postAction(r *request) (any, error) {
	name := r.PathValue("name")
	if r.api.Actions == nil || r.api.Actions.Tool(name) == nil {
		return nil, fault.NotFound()
	}
	key, err := r.key()
	if err != nil {
		return nil, err
	}
	input, err := r.json()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	if r.api.Actions.Tool(name).SideEffect {
		return r.perform(ctx, name, key, input)
	}
	call := tool.Call{UID: r.uid, Origin: r.Header.Get("Origin"), ActionID: agent.NewID(rand.Reader), Args: input}
	result, err := r.api.Actions.Execute(ctx, name, call)
	if err != nil {
		return nil, err
	}
	return actionAnswer{OK: true, Result: result}, nil
}

// perform has the loop do an action with a side effect: on the record, and once for each Idempotency-Key.
func (r *request) perform(ctx context.Context, name, key string, input json.RawMessage) (any, error) {
	sum := sha256.Sum256(append([]byte(name+"\x00"), input...))
	called, err := r.api.Loop.Propose(ctx, loop.Ask{UID: r.uid, Origin: r.Header.Get("Origin"), Prompt: "Called " + name + ".", Key: key, BodyHash: hex.EncodeToString(sum[:]),
		Call: &loop.Call{Tool: r.api.Actions.Tool(name).Name, Args: input, Own: true}})
	if err != nil {
		return nil, err
	}
	obs.SetRun(ctx, called.Run.RunID)
	if !called.Over() && called.Approval == nil {
		if _, err = r.api.settled(ctx, r.uid, called.Run); err != nil {
			return nil, err
		}
		if called, err = r.api.Loop.Called(ctx, r.uid, called.Run.RunID); err != nil {
			return nil, err
		}
	}
	v := called.Run
	switch {
	case called.Approval != nil && called.Approval.Kind == agent.KindApproval: // the operator has everything asked about
		return actionAnswer{OK: true, RunID: v.RunID, Status: v.Status}, nil
	case called.Approval != nil:
		return nil, fault.New(fault.Tool, fault.CodeUnknownOutcome, "%s It waits for you among the approvals.", called.Approval.Reason)
	case v.Status == agent.Failed:
		return nil, fault.New(v.ErrorCode, v.ErrorReason, "%s", v.Message)
	}
	return actionAnswer{OK: true, Result: called.Response.Result, RunID: v.RunID, Status: v.Status}, nil
}
