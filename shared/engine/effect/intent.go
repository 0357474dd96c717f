package effect

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// commitIntent commits the intent. Only after this commit may its owner call the provider. The commit evaluates the
// policy and the place again, so that a withdrawn rule or allowlist entry no longer allows the call. It fails if the
// documents that these depend on have changed since they were read. ok is false if the call may not be executed. The
// error is errBarred if the caller must still record that.
func commitIntent(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string, started run.Started) (ok bool,
	err error) {
	err = ex.Transition(ctx, func(tx *unit.Tx) error {
		ok = false
		a := tx.State.Action(id)
		if a.Status == run.ActionExecuting && a.Started.Same(started) {
			ok = true // the commit's answer was lost; the intent is stored
			return nil
		}
		if tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return unit.ErrHeld
		}
		fresh := a.Runnable() && started.Attempt == 1
		again := a.Status == run.ActionExecuting && started.Attempt == a.Started.Attempt+1
		if !fresh && !again || tx.Ending() != nil || !tx.Terms().CanAfford(tx.State, a) {
			return nil
		}
		call := a
		if started.ArgsHash != "" {
			moved := *a
			moved.ArgsHash, moved.Place = started.ArgsHash, started.Place
			call = &moved
		}
		if err := checkPlace(ctx, tx, call, t); err != nil {
			return err
		}
		grant, stop, err := recheckPolicy(tx, call, t)
		if stop || err != nil {
			return err
		}
		started.Grant, ok = grant, true
		return recordIntent(tx, a, t, started)
	})
	if fault.Is(err, fault.Policy, approval.CodeForged) {
		if err := noteForged(ctx, ex, id); err != nil {
			return false, err
		}
	}
	return ok, err
}

// noteForged records that the decision about a started call is forged.
func noteForged(ctx context.Context, ex *unit.Execution, id string) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		approval.Forged(tx, tx.State.Action(id))
		return nil
	})
}

// errBarred says why a call may not be executed. The caller must record the outcome.
type errBarred struct{ error }

func (e errBarred) Unwrap() error { return e.error }

// checkPlace returns errBarred if the call would act in another place than approved, according to the documents of the
// transition. A tool whose place does not depend on documents was checked before.
func checkPlace(ctx context.Context, tx *unit.Tx, a *run.Action, t *tool.Tool) error {
	if t.Reads(tx.Run.Scope()) == nil {
		return nil
	}
	in, err, missing := tx.PlaceIn(ctx, t)
	if missing != nil {
		return missing
	}
	if err == nil {
		err = tool.SamePlace(a.Place, in)
	}
	if err != nil {
		return errBarred{err}
	}
	return nil
}

// recordIntent adds the intent, which names the process that carries the call out. The commit depends on the account
// that the call acts in. If a provider was asked for a handle since the policy read its documents, the commit also
// depends on the user.
func recordIntent(tx *unit.Tx, a *run.Action, t *tool.Tool, started run.Started) error {
	tx.AddLinkPrecondition(t, t.Prepares())
	if err := tx.AddEvent(run.Event{Type: run.ActionStarted, ActionID: a.ID, Started: &started}); err != nil {
		return err
	}
	if t.KeepsOutput {
		tx.KeepOutput(a.ID)
	}
	tx.AddAudit(audit.Intent, a, func(e *audit.Entry) {
		e.Decision = decidedBy(a)
		e.Facts = tool.Facts(e.Facts).With(grantFacts(tx, a))
	})
	return nil
}

// grantFacts returns the audit facts about the grant that permits the call: its ID, and the plan and the approval that
// contain it. It returns nil for a call without a grant.
func grantFacts(tx *unit.Tx, a *run.Action) tool.Facts {
	if a.Started.Grant == "" || tx.State.Plan == nil || tx.State.Plan.Confirmed == nil {
		return nil
	}
	by := tx.State.Plan.Confirmed
	return tool.Facts{"grant": a.Started.Grant, "plan": tx.InputHash(by.Hash), "approval": by.ApprovalID}
}

// StartInSameCommit adds the intent of an allowed effect to the commit of the turn that proposes it, if nothing has to
// happen in between. That saves a commit. It returns the action's ID, or "" if the next step is a different one.
func StartInSameCommit(ctx context.Context, tx *unit.Tx, intent run.Started) (id string, err error) {
	st, a := tx.Next()
	if st != run.StepExecute || !a.SideEffect {
		return "", nil
	}
	t := tx.Ex.Toolbox.Tools[a.Tool]
	if t.Prepares() || !unit.HasTimeFor(ctx, tx.Limits().OfCall(t, a.Args)) {
		return "", nil
	}
	grant, stop, err := recheckPolicy(tx, a, t)
	if stop || err != nil {
		return "", err
	}
	intent.Grant = grant
	return a.ID, recordIntent(tx, a, t, intent)
}

// ActionOf returns the ID of the action that has this intent and no outcome yet, or "".
func ActionOf(tx *unit.Tx, intent run.Started) string {
	for _, a := range tx.State.Actions {
		if a.Status == run.ActionExecuting && a.Started.Same(intent) {
			return a.ID
		}
	}
	return ""
}

// decidedBy returns what permits an effect, for the audit log: the user's decision or the policy's.
func decidedBy(a *run.Action) string {
	switch {
	case a.Decision != "":
		return string(a.Decision)
	case a.UserInitiated:
		return "own_call"
	}
	return a.PolicyDecision
}

// recheckPolicy evaluates the policy again for a call that is about to be executed. If the allowlist permits the call,
// the user's document is also written, so that the commit fails if the entry was withdrawn in the meantime. grant is
// the ID of the plan's grant that permits the call, or empty. stop reports that the call is not executed.
func recheckPolicy(tx *unit.Tx, a *run.Action, t *tool.Tool) (grant string, stop bool, err error) {
	unproven, err := approval.CheckProof(tx, a, t)
	switch {
	case err != nil:
		return "", false, err
	case errors.Is(unproven, decision.ErrForged):
		return "", true, blockForged(tx, a)
	// the stored action does not decide whether it has an effect
	case !a.SideEffect && !t.SideEffect && !a.Unasked() && unproven == nil:
		return "", false, nil
	case unproven != nil: // it is not the user's own call, or not decided
		asked := *a
		asked.UserInitiated = false
		a = &asked
	}
	u, err := tx.User()
	if err != nil {
		return "", false, err
	}
	if err := u.CheckEnabled(); err != nil {
		return "", true, block(tx, a, "disabled_user", err)
	}
	v, err := approval.Verdict(tx, t, a.ID, a.Place, a.Args)
	if err != nil {
		return "", false, err
	}
	if a.Decision == "" && !a.UserInitiated && v.Rule == policy.RulePlanGrant {
		grant = v.Grant
	}
	if unproven != nil {
		v.Unproven = append(v.Unproven, unproven)
	}
	approval.NoteUnproven(tx, a, v.Unproven...)
	stop, err = permit(tx, a, u, v, t, unproven)
	return grant, stop, err
}

// permit applies the verdict on a call that is about to be executed. unproven is why the decision about it does not
// count, or nil. stop reports that the call is not executed.
func permit(tx *unit.Tx, a *run.Action, u *run.User, v approval.Judgement, t *tool.Tool, unproven error) (stop bool,
	err error) {
	n := approval.Effects(tx, t, a.Args)
	asks := a.Unasked() || a.Decision == "" && approval.NeedsApproval(v, a.ProposedCall)
	asks = asks || tx.Run.Doubts(a) || unproven != nil && a.Decision != ""
	switch {
	case v.Mode == policy.Deny:
		return true, block(tx, a, v.Rule, fault.New(fault.Policy, "denied", "%s", v.Reason))
	case asks && a.Status == run.ActionExecuting:
		return true, block(tx, a, v.Rule,
			fault.New(fault.Policy, "denied", "The permission for this was withdrawn before it was done."))
	case asks && approval.CheckCaps(tx, u, n) != nil:
		return true, block(tx, a, v.Rule, approval.CheckCaps(tx, u, n))
	case asks:
		reason := reasonFor(v.Decision, a)
		switch {
		case tx.Run.Doubts(a):
			reason = tx.DoubtReason()
		case errors.Is(unproven, passkey.ErrMissing) && a.Decision != "":
			reason = noPasskey
		case unproven != nil && a.Decision != "":
			reason = notSigned
		}
		return true, approval.Request(tx, a, run.KindApproval, reason)
	case a.Started.Attempt > 0: // it was counted when it was first started
		n = 0
	default:
		n = approval.Uncounted(tx, t, a, a.Args)
	}
	return start(tx, a, u, v, n)
}

// notSigned is the reason shown to a user whose stored decision has no signature, or one whose time is over.
const notSigned = "An earlier decision about this is stored without a valid signature, so you are asked again."

// noPasskey is the reason shown to a user whose stored decision has no confirmation by a passkey of the user.
const noPasskey = "This needs your passkey, and none confirms the earlier decision, so you are asked again."

// blockForged closes a call whose stored decision is forged.
func blockForged(tx *unit.Tx, a *run.Action) error {
	if a.Status != run.ActionExecuting {
		approval.Forged(tx, a)
	}
	return block(tx, a, approval.RuleForged, fault.New(fault.Policy, approval.CodeForged,
		"The stored decision about this was not made by its user, so it was not done."))
}

// start counts a call that is about to be executed, with n effects that do not count for the day yet. stop reports that
// the day's limit does not allow them.
func start(tx *unit.Tx, a *run.Action, u *run.User, v approval.Judgement, n int) (stop bool, err error) {
	if err := approval.CheckEffects(tx, u, n); err != nil {
		return true, block(tx, a, v.Rule, err)
	}
	count := func(u *run.User) { u.CountEffects(tx.Run.Agent, n, tx.Now) }
	switch {
	case (a.Decision != "" || a.UserInitiated) && n > 0:
		return false, tx.UpdateUser(count)
	case a.Decision != "" || a.UserInitiated:
		return false, nil
	case v.Rule == policy.RulePlanGrant && !tx.Limits().CountAllowed:
		// no count changes, so the user's sessions do not collide
		return false, tx.AddUserPrecondition()
	default:
		return false, tx.UpdateUser(func(u *run.User) {
			if a.Status != run.ActionExecuting {
				u.UseAllowed(v.Entries, tx.Now)
				u.NoteAllowed(tx.AllowedNow(a.ID, run.EffectOf(tx.Run.UID, a)))
			}
			count(u)
		})
	}
}

// reasonFor returns why the call needs an approval, by the present rules or else by the earlier ones.
func reasonFor(v policy.Decision, a *run.Action) string {
	if v.Mode == policy.RequireApproval {
		return v.Reason
	}
	return a.Reason
}

// block closes an action that was allowed and may no longer be executed. For an action that was started it returns
// errBarred instead, because the process that started it may only have been paused.
func block(tx *unit.Tx, a *run.Action, rule string, why error) error {
	if a.Status == run.ActionExecuting {
		return errBarred{why}
	}
	finished := failed(why)
	finished.Execution = run.NotStarted
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: &finished}); err != nil {
		return err
	}
	tx.AddAudit(audit.Denied, a, func(e *audit.Entry) { e.Rule, e.ErrorCode = rule, string(finished.Error.Class) })
	return nil
}
