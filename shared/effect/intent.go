package effect

import (
	"context"

	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// commitIntent commits the intent: after this, and only after this, its owner may call the provider. The policy is
// evaluated again in the same commit, so that a rule or an allowlist entry that has been withdrawn no longer allows the
// call; and so is where it would act, by the documents that were read: the commit fails where they, or after a handle
// was made the user's, have changed since. It reports false where the call may not be carried out after all, and the
// error errBarred where nothing is recorded of that yet.
func commitIntent(ctx context.Context, ex *journal.Execution, t *tool.Tool, id string, started run.Started) (ok bool,
	err error) {
	err = ex.Transition(ctx, func(tx *journal.Tx) error {
		ok = false
		a := tx.State.Action(id)
		if a.Status == run.ActionExecuting && a.Started.Same(started) {
			ok = true // the commit's answer was lost; the intent is there
			return nil
		}
		if tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return journal.ErrHeld
		}
		fresh := a.Runnable() && started.Attempt == 1
		again := a.Status == run.ActionExecuting && started.Attempt == a.Started.Attempt+1
		if !fresh && !again || tx.Ending() != nil || !journal.TermsOf(tx).CanAfford(tx.State, a) {
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
	return ok, err
}

// errBarred says why a call may not be carried out, of which its caller records what became.
type errBarred struct{ error }

func (e errBarred) Unwrap() error { return e.error }

// checkPlace returns errBarred if the call would act elsewhere than approved, by the documents that the transition
// rests on. A tool that knows it otherwise was asked before.
func checkPlace(ctx context.Context, tx *journal.Tx, a *run.Action, t *tool.Tool) error {
	if t.Reads(tx.Run.Scope()) == nil {
		return nil
	}
	in, err, missing := journal.PlaceIn(ctx, tx, t)
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

// recordIntent adds the intent, which names who carries the call out. It rests on the account in which the call acts,
// and where a provider was asked for a handle since the policy's documents were read, on the user.
func recordIntent(tx *journal.Tx, a *run.Action, t *tool.Tool, started run.Started) error {
	journal.RestOnLinked(tx, t, t.Prepares())
	if err := tx.AddEvent(run.Event{Type: run.ActionStarted, ActionID: a.ID, Started: &started}); err != nil {
		return err
	}
	if t.KeepsOutput {
		journal.KeepOutput(tx, a.ID)
	}
	tx.AddAudit(audit.Intent, a, func(e *audit.Entry) {
		e.Decision = decidedBy(a)
		e.Facts = tool.Facts(e.Facts).With(journal.GrantFacts(tx, a))
	})
	return nil
}

// StartInSameCommit puts the intent of an effect that is allowed into the commit of the turn that asks for it, where
// nothing has to be done in between: that saves a commit. It returns the action's id, or "" where the next step is
// another.
func StartInSameCommit(ctx context.Context, tx *journal.Tx, intent run.Started) (id string, err error) {
	st, a := tx.Next()
	if st != run.StepExecute || !a.SideEffect {
		return "", nil
	}
	t := tx.Ex.Tools[a.Tool]
	if t.Prepares() || !journal.HasTimeFor(ctx, tx.Limits().OfCall(t, a.Args)) {
		return "", nil
	}
	grant, stop, err := recheckPolicy(tx, a, t)
	if stop || err != nil {
		return "", err
	}
	intent.Grant = grant
	return a.ID, recordIntent(tx, a, t, intent)
}

// ActionOf returns the id of the action that has this intent and no outcome yet, or "".
func ActionOf(tx *journal.Tx, intent run.Started) string {
	for _, a := range tx.State.Actions {
		if a.Status == run.ActionExecuting && a.Started.Same(intent) {
			return a.ID
		}
	}
	return ""
}

// decidedBy returns, for the audit, what permits an effect: its user's decision or the policy's.
func decidedBy(a *run.Action) string {
	switch {
	case a.Decision != "":
		return string(a.Decision)
	case a.UserInitiated:
		return "own_call"
	}
	return a.PolicyDecision
}

// recheckPolicy evaluates the policy again for a call that is about to be carried out. A call that the allowlist
// permits also rewrites the user's document, so that the commit fails where the entry was withdrawn meanwhile. grant is
// the id of that on which the call rests now, or empty.
func recheckPolicy(tx *journal.Tx, a *run.Action, t *tool.Tool) (grant string, stop bool, err error) {
	if !a.SideEffect && !a.Unasked() {
		return "", false, nil
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
	stop, err = permit(tx, a, u, v)
	return grant, stop, err
}

// permit does what follows from the verdict on a call that is about to be carried out, and reports whether it is not.
func permit(tx *journal.Tx, a *run.Action, u *run.User, v approval.Judgement) (stop bool, err error) {
	asks := a.Unasked() || a.Decision == "" && approval.NeedsApproval(v, a.ProposedCall)
	asks = asks || tx.Run.Doubts(a)
	switch {
	case v.Mode == policy.Deny:
		return true, block(tx, a, v.Rule, fault.New(fault.Policy, "denied", "%s", v.Reason))
	case asks && a.Status == run.ActionExecuting:
		return true, block(tx, a, v.Rule,
			fault.New(fault.Policy, "denied", "The permission for this was withdrawn before it was done."))
	case asks && approval.CheckCaps(tx, u) != nil:
		return true, block(tx, a, v.Rule, approval.CheckCaps(tx, u))
	case asks:
		reason := reasonFor(v.Decision, a)
		if tx.Run.Doubts(a) {
			reason = journal.PutBack
		}
		return true, approval.Request(tx, a, run.KindApproval, reason)
	case a.Decision != "" || a.UserInitiated:
		return false, nil
	case a.Status != run.ActionExecuting && approval.CheckAllowed(tx, u) != nil:
		return true, block(tx, a, v.Rule, approval.CheckAllowed(tx, u))
	case v.Rule == policy.RulePlanGrant && !tx.Limits().CountAllowed:
		// nothing of the user's is counted, and their sessions do not collide
		return false, journal.RestOnUser(tx)
	default:
		first := a.Status != run.ActionExecuting
		return false, tx.UpdateUser(func(u *run.User) {
			if first {
				u.UseAllowed(v.Entries, tx.Now)
				u.NoteAllowed(journal.AllowedNow(tx, a.ID, a.ArgsHash))
			}
			if first && tx.Limits().CountAllowed {
				u.CountAllowed(tx.Run.Agent, tx.Now)
			}
		})
	}
}

// reasonFor returns why the call needs an approval: by the rules as they are now, or else as they were.
func reasonFor(v policy.Decision, a *run.Action) string {
	if v.Mode == policy.RequireApproval {
		return v.Reason
	}
	return a.Reason
}

// block closes an action that was allowed and may no longer be carried out. Of one that was started before it returns
// errBarred: that it has not happened says nothing about the process that started it, which may only have been stopped.
func block(tx *journal.Tx, a *run.Action, rule string, why error) error {
	if a.Status == run.ActionExecuting {
		return errBarred{why}
	}
	finished := failedWithoutEffect(why)
	finished.Execution = run.NotStarted
	if err := tx.AddEvent(run.Event{Type: run.ActionFinished, ActionID: a.ID, Finished: &finished}); err != nil {
		return err
	}
	tx.AddAudit(audit.Denied, a, func(e *audit.Entry) { e.Rule, e.ErrorCode = rule, string(finished.Error.Class) })
	return nil
}
