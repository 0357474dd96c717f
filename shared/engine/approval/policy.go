package approval

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// NeedsApproval reports whether the user must approve the call. A call that users make themselves needs approval only
// if the policy requires it for every call, or if the call undoes an earlier one. A reopened call always needs it.
func NeedsApproval(v Judgement, call run.ProposedCall) bool {
	if call.AsksAlways() || call.Reopens != nil {
		return v.Mode != policy.Deny
	}
	return v.Mode == policy.RequireApproval && (!call.UserInitiated || v.Rule == policy.RuleAskedForAll)
}

// askReason returns the reason that the card of the call shows.
func askReason(v Judgement, call run.ProposedCall) string {
	switch {
	case call.AsksAlways():
		return "An effect is undone only if you approve exactly this."
	case call.Reopens != nil:
		return "You undid the approval of the newer card, which had replaced this one."
	}
	return v.Reason
}

// Judgement is the policy's decision about a call, with the ruling of the call's tool, if the tool rules on each call.
type Judgement struct {
	policy.Decision
	CallPolicy *tool.CallPolicy
	Tainted    []taint.Finding // why the user's standing permission does not apply

	Unproven []error // why permissions in the store do not count: see [CheckProof]

	Repeated repeat
}

// readsOnly reports whether the run may only read, because its plan is not confirmed.
func readsOnly(s *run.State) bool { return s.Plan != nil && s.Plan.Phase() != plan.Acting }

// grantFor returns the ID of the grant in the run's confirmed plan that covers the call, or "". unproven is set if a
// grant covers it and the plan's confirmation has no valid signature.
func grantFor(tx *unit.Tx, t *tool.Tool, actionID string, at tool.Place, args json.RawMessage) (id string,
	unproven []error, err error) {
	if tx.State.Plan == nil || !t.SideEffect || !t.Pins() {
		return "", nil, nil
	}
	pinned, err := t.Pinned(args)
	if err != nil {
		return "", nil, err
	}
	g, found := tx.State.Plan.GrantFor(plan.GrantCall{ActionID: actionID, Tool: t.Name, Version: t.Version(),
		Pinned: pinned, Place: at}, tx.Now)
	if !found {
		return "", nil, nil
	}
	if why, err := checkPlan(tx, t, args); err != nil || why != nil {
		return "", []error{why}, err
	}
	return g.ID, nil, nil
}

// ruleUnknown is the rule that denies a call if its tool cannot rule on it.
const ruleUnknown = "unknown"

// Verdict evaluates the policy, the user's allowlist, and the tool's ruling on this call. actionID is the ID of a
// proposed call, or empty; at is the place where the call would act.
func Verdict(tx *unit.Tx, t *tool.Tool, actionID string, at tool.Place, args json.RawMessage) (Judgement, error) {
	call := run.ProposedCall{Place: at, Args: args}
	if a := tx.State.Action(actionID); a != nil && string(a.Args) == string(args) {
		call.Warnings = a.Warnings
	}
	return judge(tx, t, actionID, call)
}

// judge is Verdict for a call that the run may not have yet. It uses the call's place, arguments and warnings.
func judge(tx *unit.Tx, t *tool.Tool, actionID string, call run.ProposedCall) (Judgement, error) {
	at, args := call.Place, call.Args
	u, err := tx.User()
	if err != nil {
		return Judgement{}, err
	}
	targets, err := t.Targets(args)
	if err != nil {
		return Judgement{}, err
	}
	callPolicy, unruled, missing := tx.RuleIn(t, args)
	switch {
	case missing != nil:
		return Judgement{}, missing
	case unruled != nil:
		tx.Ex.LogPanic(context.Background(), "", unruled)
		return Judgement{Decision: policy.Decision{Mode: policy.Deny, Rule: ruleUnknown,
			Reason: fault.As(unruled).Message}}, nil
	}
	grant, unproven, err := grantFor(tx, t, actionID, at, args)
	if err != nil {
		return Judgement{}, err
	}
	in := policy.Input{UID: tx.Run.UID, Tool: t.Spec, Ruling: callPolicy, Place: at, Args: args, Targets: targets,
		Allowlist: u.Allow, Now: tx.Now, Grant: grant, ReadsOnly: readsOnly(tx.State),
		Unusual: slices.ContainsFunc(call.Warnings, func(w tool.Warning) bool { return w.Asks })}
	if agent := tx.Ex.Agents.Get(tx.Run.Agent); agent != nil { // an unknown agent allows less
		in.Tool, in.Effects = agent.Spec(t), agent.Effects
		if callPolicy != nil && callPolicy.Mode == tool.RuleAllow && agent.Asks(t.Name) {
			callPolicy.Mode = tool.RuleAsk
		}
	}
	before := repeated(tx, u, t, actionID, at, args, callPolicy)
	in.Repeated = before.words
	d, refused, err := decide(tx, in)
	if err != nil {
		return Judgement{}, err
	}
	found, err := tainted(tx, t, in, d)
	if in.Tainted = len(found) > 0; in.Tainted && err == nil {
		d, refused, err = decide(tx, in)
	}
	return Judgement{d, callPolicy, found, append(unproven, refused...), before}, err
}
