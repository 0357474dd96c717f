package approval

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// maxRefusals is the number of refused decisions about one approval that the audit log records. It keeps a client from
// growing the log without limit.
const maxRefusals = 10

// errStale means that an approval differs from the card that the user would see now.
type errStale struct {
	why    *fault.Error
	fresh  *run.Action // the action that replaces it, or nil
	reason string      // why approval is needed
}

func (e errStale) Error() string { return e.why.Error() }

func (e errStale) Unwrap() error { return e.why }

func staleError(code fault.Code, message string) *fault.Error {
	return fault.New(fault.Policy, code, "%s", message)
}

// checkStale compares an approval with the card that its action would get now. They differ if the stored one was
// tampered with, if the tool has changed or would act in another place, or if another rule of the policy requires the
// approval. A review that was opened without its tool is not compared: if it starts a new call, that call needs its own
// approval. An action that the policy now denies gets no new approval: it continues to wait, and its user may still
// edit it.
func checkStale(tx *unit.Tx, ap *run.Approval, a *run.Action, at CurrentPlace, decision run.Decision) error {
	t := tx.ToolIn(a.Tool, a.UserInitiated)
	switch {
	case t == nil && tx.Ex.Agents.Get(tx.Run.Agent) == nil:
		return fault.New(fault.Tool, fault.CodeAgentGone,
			"The agent %q is not available at the moment, so this cannot be approved now. Please try again later, "+
				"or reject it.", tx.Run.AgentName()).After(time.Minute)
	case t == nil || ap.Kind == run.KindReview && ap.ToolVersion != "" && t.Version() != ap.ToolVersion:
		return errStale{why: staleError(fault.CodeStaleView,
			"The tool has changed since you were asked. Please reject this and ask again.")}
	case at.Err != nil:
		return at.Err
	case ap.Kind == run.KindReview:
		return nil // start_new requests a new approval
	}
	now, err := revalidate(ap, a, t, at.Place)
	if err != nil {
		return err
	}
	verdict, err := Verdict(tx, t, a.ID, now.Place, now.Args)
	switch {
	case err != nil:
		return err
	case verdict.Mode == policy.Deny && decision == run.ApproveEdited:
		return nil
	case verdict.Mode == policy.Deny:
		return fault.New(fault.Policy, "denied", "%s", verdict.Reason)
	}
	current, err := withCard(tx, now, ap.Kind, askReason(verdict, now.ProposedCall))
	if err != nil {
		return err
	}
	if why := staleReason(ap, current, verdict.Decision); why != nil {
		return errStale{why, now, current.Reason}
	}
	return nil
}

// revalidate returns the action as the tool reads it now, in the place where it would act now. It uses the run's own
// arguments, not the copy in the approval.
func revalidate(ap *run.Approval, a *run.Action, t *tool.Tool, in tool.Place) (*run.Action, error) {
	now := *a
	if t.Version() == ap.ToolVersion {
		if run.ArgsHash(ap.UID, t.Spec, a.Place, a.Args) != a.ArgsHash {
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
	now.Place, now.ArgsHash = in, run.ArgsHash(ap.UID, t.Spec, in, now.Args)
	return &now, nil
}

// staleReason returns the first difference between the approval and the current card, or nil.
func staleReason(ap, current *run.Approval, v policy.Decision) *fault.Error {
	switch {
	case ap.ToolVersion != current.ToolVersion:
		return staleError(fault.CodeStaleView, "The tool has changed since you were asked. Please review this again.")
	case ap.Place != current.Place:
		return staleError(fault.CodeStaleView,
			"The linked account or host has changed since you were asked. Please review this again.")
	case ap.Tool != current.Tool, ap.ArgsHash != current.ArgsHash, string(ap.Args) != string(current.Args):
		return staleError(fault.CodeIntegrity,
			"The stored request does not match what the assistant asked for. Please review it again.")
	case !samePreview(ap, current):
		return staleError(fault.CodeStaleView,
			"The preview has changed since you were asked. Please review it again.")
	case !tool.SamePreconditions(ap.RestsOn, current.RestsOn):
		return staleError(fault.CodeStaleView,
			"What the card shows of the present state has changed since you were asked. Please review it again.")
	case !ap.Ruled.Same(current.Ruled):
		return staleError(fault.CodeStaleView,
			"What this would do is judged otherwise than when you were asked. Please review this again.")
	case current.Rule == policy.RuleTainted && !slices.Equal(ap.Findings, current.Findings):
		return staleError(fault.CodeStaleView,
			"What in this comes from strangers is judged otherwise than when you were asked. Please review this again.")
	case v.Mode == policy.RequireApproval && ap.Rule != current.Rule:
		return staleError(fault.CodeStaleView,
			"The rules have changed since you were asked. Please review this again.")
	}
	return nil
}

// samePreview reports whether the stored preview equals the current one as it would read back from the store. Previews
// of earlier releases may lack times (Field.At), arguments (Field.Argument) or moments. Those are compared without
// them.
func samePreview(ap, current *run.Approval) bool {
	var back tool.Preview
	b, err := strictjson.Marshal(current.Preview)
	if err != nil || json.Unmarshal(b, &back) != nil {
		return false
	}
	if !slices.ContainsFunc(ap.Preview.Fields, func(f tool.Field) bool { return f.At != "" }) {
		for i := range back.Fields {
			back.Fields[i].At = ""
		}
	}
	if !slices.ContainsFunc(ap.Preview.Fields, func(f tool.Field) bool { return f.Argument != "" }) {
		for i := range back.Fields {
			back.Fields[i].Argument = ""
		}
		back.Choices = nil
	}
	if ap.Preview.Moments == nil &&
		!slices.ContainsFunc(ap.Preview.Fields, func(f tool.Field) bool { return f.Moments != nil }) {
		for i := range back.Fields {
			back.Fields[i].Moments = nil
		}
		back.Moments = nil
	}
	return reflect.DeepEqual(ap.Preview, back)
}

// RecordRefusal adds a refused decision to the audit log, and replaces a stale approval with a new one.
func RecordRefusal(tx *unit.Tx, ap *run.Approval, r Resolution, why error) error {
	if ap.Refusals < maxRefusals {
		ap.Refusals++
		tx.Changed = true
		tx.AddAudit(audit.Refused, tx.State.Action(ap.ActionID), func(e *audit.Entry) {
			e.ApprovalID, e.Decision = ap.ID, string(r.Decision)
			unit.SetErrorInfo(e, run.ErrorInfoOf(why))
		})
	}
	var old errStale
	if !errors.As(why, &old) || old.fresh == nil {
		return nil
	}
	if err := Close(tx, ap.ID, run.ApprovalReplaced, ""); err != nil {
		return err
	}
	if ap.Kind == run.KindPlan {
		if err := ClosePlan(tx, ap.ID, plan.Replaced, ""); err != nil {
			return err
		}
	}
	return Request(tx, old.fresh, ap.Kind, old.reason)
}
