package approval

import (
	"cmp"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// The checks below establish that the call still waits for this decision.

func readable(c *candidate) error {
	if p := c.tx.State.Plan; p != nil && p.Unreadable {
		return plan.ErrUnreadable
	}
	return nil
}

func undecided(c *candidate) error {
	if c.ap.Status != run.ApprovalOpen {
		err := closedError(c.ap, c.a, c.Resolution, c.hash)
		if errors.Is(err, ErrSameDecision) {
			return cmp.Or(c.saysMore(), err)
		}
		return err
	}
	return nil
}

// saysMore returns an error if a repeated decision has words or a condition that the recorded one does not have. They
// would be lost.
func (c *candidate) saysMore() error {
	at := c.ap.DecidedAt.Format(time.RFC3339)
	switch p := c.tx.State.Plan; {
	case c.Comment != "" && c.a != nil && c.Comment != c.a.Comment:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"Already decided: %s, at %s, with other words. The new words were not sent.", c.ap.Decision, at)
	case c.Strict && p != nil && p.Confirmed != nil && p.Confirmed.ApprovalID == c.ap.ID && !p.Confirmed.Strict:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"This plan was confirmed at %s without a request to approve every change.", at)
	}
	return nil
}

func unexpired(c *candidate) error {
	if !c.tx.Now.Before(c.ap.ExpiresAt) {
		return fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	}
	return nil
}

func waiting(c *candidate) error {
	if c.a == nil || !c.a.Waiting() || c.a.ApprovalID != c.ap.ID {
		return fault.New(fault.Policy, fault.CodeAlreadyResolved, "This is no longer waiting for a decision.")
	}
	return nil
}

// askedOnce checks that the decision allows nothing in advance where the user must be asked each time: about text from
// strangers, about the calls of the user's agent, and about reopened calls.
func askedOnce(c *candidate) error {
	switch {
	case !storesEntries(c.Decision):
		return nil
	case c.ap.Rule == policy.RuleTainted:
		return fault.New(fault.Policy, fault.CodeNotApplicable,
			"This contains text by strangers, so it needs your approval each time. Approve it once instead.")
	case c.tx.State.Input.DelegatedBy != nil:
		return fault.New(fault.Policy, fault.CodeNotApplicable,
			"Requests of your agent need your approval each time. Approve it once instead.")
	case c.a != nil && c.a.Reopens != nil:
		return fault.New(fault.Policy, fault.CodeNotApplicable,
			"This card waits again after an undo, so it allows nothing in advance. Approve it once instead.")
	}
	return nil
}

// exact checks that a call that undoes an earlier one is approved exactly as it is shown, or not at all.
func exact(c *candidate) error {
	if c.a.AsksAlways() && (storesEntries(c.Decision) || c.Decision == run.ApproveEdited) {
		return fault.New(fault.Policy, fault.CodeNotApplicable,
			"This undoes exactly one earlier call. Approve it once, or reject it.")
	}
	return nil
}

// seen checks that the user decides about the card that waits. The hash of another card changes nothing about this one.
func seen(c *candidate) error {
	if c.ArgsHash != "" && c.ArgsHash != c.ap.ArgsHash {
		return fault.New(fault.Policy, fault.CodeStaleView, "This has changed since you saw it. Please reload.")
	}
	return nil
}

func current(c *candidate) error { return checkStale(c.tx, c.ap, c.a, c.at, c.Decision) }

// closedError returns the answer to a decision about an approval that is no longer open.
func closedError(ap *run.Approval, a *run.Action, r Resolution, hash string) error {
	switch {
	case ap.Decision == run.Refine && r.Decision == run.Refine && a != nil &&
		(a.Comment != r.Comment || !attachment.Same(a.Files, r.Files)):
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"You have already asked for another plan, in other words. Please wait for it, and refine that.")
	case ap.Status == run.ApprovalExpired:
		return fault.New(fault.Policy, fault.CodeExpired, "This approval has expired; nothing was done.")
	case ap.Decision != "" && ap.Decision == r.Decision && sawOther(ap, r):
		return fault.New(fault.Policy, fault.CodeStaleView,
			"The decision was about a different version from the one you saw. Please reload.")
	case ap.Decision != "" && ap.Decision == r.Decision &&
		(r.Decision != run.ApproveEdited || hash == cmp.Or(ap.EditHash, ap.ArgsHash)):
		return ErrSameDecision
	case ap.Status == run.ApprovalReplaced:
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was replaced by a new request. Please reload.")
	case ap.Status == run.ApprovalCancelled:
		return fault.New(fault.Policy, fault.CodeAlreadyResolved,
			"This has ended, so you can no longer decide about it.")
	}
	return fault.New(fault.Policy, fault.CodeAlreadyResolved, "Already decided: %s, at %s.", ap.Decision,
		ap.DecidedAt.Format(time.RFC3339))
}

// sawOther reports whether the user saw another version than the decided one or its edit.
func sawOther(ap *run.Approval, r Resolution) bool {
	return r.ArgsHash != "" && r.ArgsHash != ap.ArgsHash && r.ArgsHash != ap.SeenHash
}
