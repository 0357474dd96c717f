package loop

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// maxRefusals is how many refused decisions about one approval go to the audit, so that nobody grows it without end.
const maxRefusals = 10

// errStale says that an approval is not what its user would be shown now.
type errStale struct {
	why    *fault.Error
	fresh  *agent.Action // as it is asked for instead, or nil where it cannot be
	reason string        // why it is asked for
}

func (e errStale) Error() string { return e.why.Error() }
func (e errStale) Unwrap() error { return e.why }

func staleError(code fault.Code, message string) *fault.Error {
	return fault.New(fault.Policy, code, "%s", message)
}

// checkStale holds an approval against the card that its action would get now. They differ where the stored one was
// tampered with, where the tool has changed or would act in another place, and where another rule of the policy asks.
// What is denied by now is not asked for afresh: it goes on waiting, and its user may still change it.
func (tx *tx) checkStale(ap *agent.Approval, a *agent.Action, at placement, decision agent.Decision) error {
	t := tx.ex.Tools[a.Tool]
	switch {
	case t == nil || ap.Kind == agent.KindReview && t.Version() != ap.ToolVersion:
		return errStale{why: staleError(fault.CodeStaleView,
			"The tool has changed since you were asked. Please reject this and ask again.")}
	case at.err != nil:
		return at.err
	case ap.Kind == agent.KindReview:
		return nil // what is started anew is asked for anew
	}
	now, err := revalidate(ap, a, t, at.Place)
	if err != nil {
		return err
	}
	verdict, err := tx.verdict(t, now.Args)
	switch {
	case err != nil:
		return err
	case verdict.Mode == policy.Deny && decision == agent.ApproveEdited:
		return nil
	case verdict.Mode == policy.Deny:
		return fault.New(fault.Policy, "denied", "%s", verdict.Reason)
	}
	card, err := tx.snapshot(now, ap.Kind, verdict.Reason)
	if err != nil {
		return err
	}
	if why := staleReason(ap, card, verdict); why != nil {
		return errStale{why, now, verdict.Reason}
	}
	return nil
}

// revalidate is the action as the tool reads it now and for where it would act now, with the run's own arguments: the
// approval's are a copy.
func revalidate(ap *agent.Approval, a *agent.Action, t *tool.Tool, in tool.Place) (*agent.Action, error) {
	now := *a
	if t.Version() == ap.ToolVersion {
		if agent.ArgsHash(ap.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
			return nil, errStale{why: staleError(fault.CodeIntegrity,
				"The stored request does not match what the assistant asked for, so it cannot be approved.")}
		}
	} else {
		args, err := t.Normalize(a.Args)
		if err != nil {
			return nil, errStale{why: staleError(fault.CodeStaleView,
				"The tool has changed since you were asked. Please reject this and ask again.")}
		}
		now.Args = args
	}
	now.Place, now.ArgsHash = in, agent.ArgsHash(ap.UID, t.Spec, in, now.Args)
	return &now, nil
}

// staleReason says in what the approval is not the card, or nil.
func staleReason(ap, card *agent.Approval, v policy.Decision) *fault.Error {
	switch {
	case ap.ToolVersion != card.ToolVersion:
		return staleError(fault.CodeStaleView, "The tool has changed since you were asked. Please review this again.")
	case ap.Place != card.Place:
		return staleError(fault.CodeStaleView,
			"The linked account or host has changed since you were asked. Please review this again.")
	case ap.Tool != card.Tool, ap.ArgsHash != card.ArgsHash, string(ap.Args) != string(card.Args):
		return staleError(fault.CodeIntegrity,
			"The stored request does not match what the assistant asked for. Please review it again.")
	case !samePreview(ap, card):
		return staleError(fault.CodeStaleView,
			"The preview has changed since you were asked. Please review it again.")
	case v.Mode == policy.RequireApproval && ap.Rule != card.Rule:
		return staleError(fault.CodeStaleView,
			"The rules have changed since you were asked. Please review this again.")
	}
	return nil
}

// samePreview compares what was stored with what would be: as it reads back. One that was stored before previews named
// their moments shows the same without them.
func samePreview(ap, card *agent.Approval) bool {
	var back tool.Preview
	b, err := strictjson.Marshal(card.Preview)
	if err != nil || json.Unmarshal(b, &back) != nil {
		return false
	}
	if !slices.ContainsFunc(ap.Preview.Fields, func(f tool.Field) bool { return f.At != "" }) {
		for i := range back.Fields {
			back.Fields[i].At = ""
		}
	}
	return reflect.DeepEqual(ap.Preview, back)
}

// recordRefusal puts a refused decision into the audit, and asks afresh in the place of an approval that is outdated.
func (tx *tx) recordRefusal(ap *agent.Approval, r Resolution, why error) error {
	if ap.Refusals < maxRefusals {
		ap.Refusals++
		tx.changed = true
		tx.addAudit(audit.Refused, tx.state.Action(ap.ActionID), func(e *audit.Entry) {
			e.ApprovalID, e.Decision = ap.ID, string(r.Decision)
			setErrorInfo(e, agent.ErrorInfoOf(why))
		})
	}
	var old errStale
	if !errors.As(why, &old) || old.fresh == nil {
		return nil
	}
	if err := tx.closeApproval(ap.ID, agent.ApprovalReplaced, ""); err != nil {
		return err
	}
	return tx.requestApproval(old.fresh, ap.Kind, old.reason)
}
