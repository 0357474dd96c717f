package approval

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// CurrentPlace is the place where a tool's calls would act now, or the error that explains why they cannot act.
type CurrentPlace struct {
	tool.Place
	Err error

	Completed Completion // of the one call that is validated
}

// Places holds the places where tools' calls would act for the run's user.
type Places map[*tool.Tool]CurrentPlace // only tools that need more than documents

// AskPlaces asks the tools where their calls would act in the scope, before a transition. Tools that need only
// documents answer within the transition ([Places.Of]).
func AskPlaces(ctx context.Context, ex *unit.Execution, scope tool.Scope, tools ...*tool.Tool) Places {
	out := Places{}
	for _, t := range tools {
		if t == nil || !t.Placed() || t.Reads(scope) != nil {
			continue
		}
		if _, asked := out[t]; !asked {
			in, err := t.Place(ctx, scope)
			ex.LogPanic(ctx, "", err)
			out[t] = CurrentPlace{Place: in, Err: err}
		}
	}
	return out
}

// LookAgain reads the user's linked accounts again if one of the tools cannot act with those that were read when the
// run began. The user may have linked an account since. If the store does not answer, the earlier accounts stay.
func LookAgain(ctx context.Context, ex *unit.Execution, tools ...*tool.Tool) {
	for _, t := range tools {
		if t == nil || t.Reads(ex.Run.Scope()) == nil {
			continue
		}
		if _, err := t.Place(ex.Linked(ctx, t), ex.Run.Scope()); err == nil {
			continue
		}
		if err := ex.ReadLinked(ctx, t, true); err != nil {
			ex.Log.WarnContext(ctx, "a user's linked accounts could not be read again", "runId", ex.ID, "error", err)
		}
		return
	}
}

// Of returns the place where the tool's calls would act. The transition must return the error.
func (p Places) Of(ctx context.Context, tx *unit.Tx, t *tool.Tool) (CurrentPlace, error) {
	if at, asked := p[t]; asked || t == nil || !t.Placed() {
		return at, nil
	}
	in, err, missing := tx.PlaceIn(ctx, t)
	tx.Ex.LogPanic(ctx, "", err)
	return CurrentPlace{Place: in, Err: err}, missing
}

var validDisplayName = lazyregexp.New(`^[A-Za-z0-9_.-]{1,64}$`)

// DisplayName returns a tool's name in the form that is stored and shown.
func DisplayName(name string) string {
	if !validDisplayName.MatchString(name) {
		return "unknown"
	}
	return name
}

// Validate rejects one call of the model, allows it, or requests approval (seed 000 §4 to §6). It trusts nothing in the
// call: the tool must exist, the arguments are validated and normalised, and the policy sees the normalised arguments.
func Validate(ctx context.Context, tx *unit.Tx, call run.ProposedCall, wanted json.RawMessage, at CurrentPlace) error {
	id := run.ActionID(tx.Run.ID, call.Turn, call.Index, 0)
	t := tx.ToolIn(call.Tool, call.UserInitiated)
	call.Tool = DisplayName(call.Tool)
	if t == nil || t.UserOnly && !call.UserInitiated {
		return Reject(tx, id, call, fault.New(fault.Model, "unknown_tool", "This tool does not exist."))
	}
	call.SideEffect, call.Final, call.Untrusted = t.SideEffect, t.Final, t.Untrusted
	call.Disposable = t.Disposes
	if len(wanted) == 0 || wanted[0] != '{' {
		return Reject(tx, id, call,
			fault.New(fault.Model, "unreadable_arguments", "The arguments are not a JSON object."))
	}
	args, err := t.Normalize(wanted)
	if err != nil {
		call.Tried = t.Tried(wanted)
		return Reject(tx, id, call, err)
	}
	call.Args, call.Place, call.ArgsHash = args, at.Place, run.ArgsHash(tx.Run.UID, t.Spec, at.Place, args)
	if at.Err != nil {
		return Reject(tx, id, call, at.Err)
	}
	if err := readWhole(tx, t, call); err != nil {
		return Reject(tx, id, call, err)
	}
	switch done := at.Completed; {
	case done.Err != nil:
		return Reject(tx, id, call, done.Err)
	case done.Args == nil && t.Completes() && !readsOnly(tx.State):
		return Reject(tx, id, call, fault.Unavailable("The facts that this call needs could not be read.", nil))
	case done.Args != nil:
		call.Args, call.ArgsHash = done.Args, run.ArgsHash(tx.Run.UID, t.Spec, at.Place, done.Args)
	}
	at.Completed.on(&call, t)
	if call.After, err = readBefore(tx, t, call); err != nil {
		return err
	}
	return applyPolicy(ctx, tx, id, call, t)
}

// applyPolicy evaluates the policy for a call that is well-formed, and records the call.
func applyPolicy(ctx context.Context, tx *unit.Tx, id string, call run.ProposedCall, t *tool.Tool) error {
	if rejectedBefore(tx, call.ArgsHash) {
		return Reject(tx, id, call,
			fault.New(fault.Policy, "rejected_before",
				"The user has already rejected exactly this call, or revoked their approval."))
	}
	if by := narrowedBy(tx.State, t); by != nil && !call.UserInitiated {
		call.Rule = policy.RuleNarrowed
		return Reject(tx, id, call, fault.New(fault.Policy, "denied",
			"This tool may not be called now: %s lets only these be called: %s.", by.By, strings.Join(by.Tools, ", ")))
	}
	var err error
	if call.Narrows, err = t.Restrict(call.Args); err != nil {
		return Reject(tx, id, call, err)
	}
	verdict, err := judge(tx, t, id, call)
	switch {
	case tool.IsPanic(err):
		return Reject(tx, id, call, err)
	case err != nil:
		return err
	}
	call.Ruled = run.RuledBy(verdict.CallPolicy)
	shown, err := previewAt(t, call, verdict)
	if err != nil {
		return Reject(tx, id, call, err)
	}
	if b, err := strictjson.Marshal(shown); err != nil || len(b)+len(call.Args) > maxSnapshot {
		return Reject(tx, id, call, fault.Invalid("", "too large to show to the user for approval"))
	}
	call.PolicyDecision, call.Rule, call.Reason, call.Allowed = string(verdict.Mode), verdict.Rule,
		askReason(verdict, call), verdict.Entries
	call.Grant = verdict.Grant
	call.RequiresApproval = NeedsApproval(verdict, call)
	terms := tx.Terms()
	dear := call.SideEffect && terms.EffectsUsedUp(tx.State)                     // no user is asked
	asks := call.RequiresApproval && terms.InTurn(tx.State, call.Index) && !dear // otherwise when its turn comes
	switch {
	case verdict.Mode == policy.Deny:
		return Reject(tx, id, call, fault.New(fault.Policy, "denied", "%s", verdict.Reason))
	case asks:
		full, err := checkLimits(tx, t, call.Args)
		if err != nil {
			return err
		}
		if full != nil {
			return Reject(tx, id, call, full)
		}
	}
	if err := proveOwn(ctx, tx, id, &call); err != nil {
		return err
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	NoteUnproven(tx, tx.State.Action(id), verdict.Unproven...)
	if asks {
		a := tx.State.Action(id)
		return Request(tx, a, kindOf(tx.State, a), call.Reason)
	}
	return nil
}

// checkLimits returns the limit of open approvals or of effects that another approval would exceed, or nil. err means
// that the user could not be read.
func checkLimits(tx *unit.Tx, t *tool.Tool, args json.RawMessage) (full, err error) {
	u, err := tx.User()
	if err != nil {
		return nil, err
	}
	if t.Name == plan.ProposeTool && tx.State.Plan != nil {
		return CheckOpen(tx, u), nil
	}
	return CheckCaps(tx, u, Effects(tx, t, args)), nil
}

// narrowedBy returns the restriction by an earlier call of the run that excludes the tool, or nil. A call restricts the
// calls after it, including those of its own turn. A restriction excludes neither tools that only end the run nor the
// tools of a session.
func narrowedBy(s *run.State, t *tool.Tool) *tool.Restriction {
	if t.Final && !t.SideEffect || t.Name == plan.ProposeTool || t.Name == plan.ReflectTool {
		return nil
	}
	for _, a := range s.Actions {
		if n := a.Narrows; n != nil && a.Status != run.ActionFailed && a.Status != run.ActionRejected &&
			!slices.Contains(n.Tools, t.Name) {
			return n
		}
	}
	return nil
}

// rejectedBefore reports whether the user has rejected exactly this call in this run.
func rejectedBefore(tx *unit.Tx, hash string) bool {
	for _, a := range tx.State.Actions {
		if a.Status == run.ActionRejected && a.ArgsHash == hash {
			return true
		}
	}
	return false
}

// Reject records that a call does not run, with the reason. The model gets the reason and may call again, up to its
// limit of calls.
func Reject(tx *unit.Tx, id string, call run.ProposedCall, why error) error {
	p := run.ErrorInfoOf(why)
	if call.PolicyDecision == "" {
		call.PolicyDecision = string(policy.Deny)
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionProposed, ActionID: id, Proposed: &call}); err != nil {
		return err
	}
	finished := &run.Finished{Status: run.ActionFailed, Execution: run.NotStarted, Error: p, Err: why}
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: id, Finished: finished}); err != nil {
		return err
	}
	if call.SideEffect {
		tx.AddAudit(audit.Denied, tx.State.Action(id),
			func(e *audit.Entry) { e.Decision, e.ErrorCode = call.PolicyDecision, string(p.Class) })
	}
	return nil
}
