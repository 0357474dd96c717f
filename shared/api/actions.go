package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// DeclaredActions are the operator's declared actions (shared/tools/action).
type DeclaredActions interface {
	// Tool returns the action with the name as a tool, or nil if there is no such action.
	Tool(name string) *tool.Tool
	// Tools returns all actions as tools.
	Tools() tool.Set
	// Unbound returns the names of the actions that have neither a handler nor a binding.
	Unbound() []string
	// Execute runs an action that has no side effect.
	Execute(ctx context.Context, name string, c tool.Call) (json.RawMessage, error)
}

// actionAnswer is the response to an action. An action with a side effect has a run. While another process executes it,
// the response has the run's status and no result.
type actionAnswer struct {
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	RunID  string          `json:"runId,omitempty"`
	Status run.Status      `json:"status,omitempty"`
}

// postAction runs a declared action for the calling user. It needs no approval, because the user requests it directly.
func postAction(r *request) (any, error) {
	name, origin := r.PathValue("name"), r.Header.Get("Origin")
	if r.api.Actions == nil || r.api.Actions.Tool(name) == nil {
		return nil, fault.NotFound()
	}
	if !r.api.Loop.Agents.Admits(origin, r.api.Actions.Tool(name).Name) {
		return nil, fault.New(fault.Auth, fault.CodeOrigin, "This action is not for pages of this site.")
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
	call := tool.Call{UID: r.uid, Origin: origin, ActionID: run.NewID(rand.Reader), Args: input}
	result, err := r.api.Actions.Execute(ctx, name, call)
	if err != nil {
		return nil, err
	}
	return actionAnswer{OK: true, Result: result}, nil
}

// perform runs an action with a side effect through the loop, which records it and executes it once for each
// Idempotency-Key.
func (r *request) perform(ctx context.Context, name, key string, input json.RawMessage) (any, error) {
	sum := sha256.Sum256(append([]byte(name+"\x00"), input...))
	called, err := r.api.Loop.StartCall(ctx, loop.StartRequest{UID: r.uid, Email: r.email,
		Origin: r.Header.Get("Origin"), Key: key, BodyHash: hex.EncodeToString(sum[:])},
		loop.Call{Prompt: "Called " + name + ".", Tool: r.api.Actions.Tool(name).Name, Args: input, Own: true})
	if err != nil {
		return nil, err
	}
	obs.SetRun(ctx, called.Run.RunID)
	if !called.Terminal() && called.Approval == nil {
		r.settled(ctx, called.Run, patience{until: time.Now().Add(keyedWait)})
		if called, err = r.api.Loop.CallResult(ctx, r.uid, called.Run.RunID); err != nil {
			return nil, err
		}
	}
	v := called.Run
	switch {
	case called.Approval != nil && called.Approval.Kind == run.KindApproval: // required by the operator's policy
		return actionAnswer{OK: true, RunID: v.RunID, Status: v.Status}, nil
	case called.Approval != nil:
		return nil, fault.New(fault.Tool, fault.CodeUnknownOutcome, "%s Please check it in your inbox.",
			called.Approval.Reason)
	case v.Status == run.Failed:
		return nil, fault.New(v.ErrorCode, v.ErrorReason, "%s", v.Message)
	}
	return actionAnswer{OK: true, Result: called.Response.Result, RunID: v.RunID, Status: v.Status}, nil
}
