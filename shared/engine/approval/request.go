// Package approval holds a call until its user has decided about it. It validates the model's calls, evaluates the
// policy, and stores the card that the user sees. It records a decision only if the card is still up to date. Otherwise
// it refuses the decision and requests approval with a new card.
package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Request opens an approval or a review for the action.
func Request(tx *unit.Tx, a *run.Action, kind run.Kind, reason string) error {
	known := tx.State.Action(a.ID)
	if known.ArgsHash != a.ArgsHash {
		a.Warnings = nil // they are about another call
	}
	ap, err := withCard(tx, a, kind, reason)
	if err != nil {
		return err
	}
	if ap.Findings == nil && kind != run.KindReview {
		found, err := marked(tx, a)
		if err != nil {
			return err
		}
		ap.Findings = findings(found)
	}
	if ap.InsteadOf, err = earlierCards(tx, a, ap); err != nil {
		return err
	}
	tx.Run.Approvals++
	ap.ID = run.ApprovalID(tx.Run.ID, tx.Run.Approvals)
	tx.Approvals[ap.ID] = ap
	wait := &run.Wait{ApprovalID: ap.ID, Kind: kind, ExpiresAt: ap.ExpiresAt}
	if known.ArgsHash != ap.ArgsHash {
		wait.Args, wait.ArgsHash, wait.Place = ap.Args, ap.ArgsHash, ap.Place
	}
	if !known.Ruled.Same(ap.Ruled) {
		wait.Ruled = ap.Ruled
	}
	n := Effects(tx, tx.Ex.Toolbox.Proposed(tx.Run, tx.State, a.Tool), ap.Args)
	if n > 1 {
		wait.Effects = n
	}
	if err := tx.AddEvent(run.Event{Type: run.ActionWaits, ActionID: a.ID, Wait: wait}); err != nil {
		return err
	}
	if kind == run.KindPlan {
		if err := Planned(tx, plan.Event{Proposed: &plan.Proposed{Plan: ap.Args, Hash: ap.ArgsHash, ActionID: a.ID,
			ApprovalID: ap.ID, Place: ap.Place}}); err != nil {
			return err
		}
	}
	a = tx.State.Action(a.ID)
	tx.AddAudit(audit.Requested, a, func(e *audit.Entry) { e.Decision = string(kind) })
	if kind == run.KindPlan && tx.State.Input.DelegatedBy == nil {
		n = 0 // the user has just asked for the plan
	}
	if err := tx.UpdateUser(func(u *run.User) { u.CountApproval(ap.Agent, n, tx.Now) }); err != nil {
		return err
	}
	return tx.AppendMessage(run.RoleAssistant, ap.ID, "%s", run.WaitingFor(a, ap.Preview.Title))
}

// Planned adds events of the run's session.
func Planned(tx *unit.Tx, events ...plan.Event) error {
	for _, e := range events {
		if err := tx.AddEvent(run.Event{Type: run.EventType(e.Type()), Planned: &e}); err != nil {
			return err
		}
	}
	return nil
}

// ClosePlan records why a plan that was not confirmed no longer waits, with the user's comment.
func ClosePlan(tx *unit.Tx, approvalID string, how plan.How, words string) error {
	return Planned(tx, plan.Event{Closed: &plan.Closed{ApprovalID: approvalID, How: how, Words: words}})
}

// withCard returns the approval with the card that the user would see now.
func withCard(tx *unit.Tx, a *run.Action, kind run.Kind, reason string) (*run.Approval, error) {
	ap := &run.Approval{Kind: kind, UID: tx.Run.UID, RunID: tx.Run.ID, ThreadID: tx.Run.ThreadID,
		Agent: tx.Run.AgentName(), ActionID: a.ID, Tool: a.Tool, Args: a.Args, ArgsHash: a.ArgsHash, Place: a.Place,
		Preview:     tool.Preview{Title: a.Tool},
		Reason:      reason,
		RequestedAt: tx.Now, ExpiresAt: expiry(tx, kind), Status: run.ApprovalOpen}
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, a.Tool)
	if t == nil { // the tool may have been removed since the review began
		ap.Decisions = reviewDecisions
		return ap, nil
	}
	verdict, err := Verdict(tx, t, a.ID, a.Place, a.Args)
	if err != nil {
		return nil, err
	}
	if ap.Decisions, err = decisions(tx, t, a, kind, verdict); err != nil {
		return nil, err
	}
	if ap.PasskeyFor, err = passkeyFor(tx, ap, t); err != nil {
		return nil, err
	}
	ap.ToolVersion, ap.Rule, ap.Ruled = t.Version(), verdict.Rule, run.RuledBy(verdict.CallPolicy)
	ap.RestsOn = a.RestsOn
	ap.Findings = withReopened(findings(verdict.Tainted), a.Reopens)
	if ap.Preview, err = previewAt(t, a.ProposedCall, verdict); err != nil {
		return nil, err
	}
	if kind == run.KindReview && a.Result != nil {
		ap.Preview.Fields = append(ap.Preview.Fields, returnedBefore(a.Result))
	}
	if slices.ContainsFunc(ap.Decisions, storesEntries) {
		ap.Preview.Fields = append(ap.Preview.Fields, alwaysCovers(ap, verdict))
	}
	if ap.TimeZone = tx.Run.Locale.TimeZone; ap.TimeZone != "" {
		ap.Preview = ap.Preview.In(tx.Run.Locale.Zone())
	}
	return ap, nil
}

// previewAt returns the card's preview: the place where the call acts, followed by the tool's own preview. The first
// warning is about an equal earlier call, and the last ones are those of the proposal.
func previewAt(t *tool.Tool, call run.ProposedCall, v Judgement) (tool.Preview, error) {
	p, err := t.Preview(call.Args)
	p = p.Warned(v.CallPolicy).With(call.Warnings)
	if v.Repeated.words != "" {
		p.Warnings = append([]string{v.Repeated.words}, p.Warnings...)
		p.Moments = append(p.Moments, v.Repeated.at...)
	}
	if err != nil || call.Place == (tool.Place{}) {
		return p, err
	}
	name, _ := visible.Line(call.Place.Name)
	p.Fields = append([]tool.Field{{Label: call.Place.Label, Value: name}}, p.Fields...)
	return p, nil
}

// returnedBefore returns the field with the part of the result that arrived before the outcome was lost. It helps the
// user to find out what happened.
func returnedBefore(result json.RawMessage) tool.Field {
	text := string(result)
	_ = json.Unmarshal(result, &text) // any other value is shown as JSON
	shown, _ := visible.Text(clip.Text(text, maxShown))
	return tool.Field{Label: "It returned before", Value: shown, Long: true}
}

// bounds describes the limits of each permission that "always allow" stores.
var bounds = fmt.Sprintf("for %d days and up to %d times a day", int(policy.EntryLife/(24*time.Hour)),
	policy.UsedPerDay)

// alwaysLabel is the label of the field that alwaysCovers returns.
const alwaysLabel = "Always allow covers"

// alwaysCovers describes the permission that "always allow" would store, if the card offers it (policy.Entry).
func alwaysCovers(ap *run.Approval, v Judgement) tool.Field {
	covers := "Exactly this, " + bounds + ": "
	if slices.Contains(ap.Decisions, run.ApproveAlwaysCommand) {
		if v.CallPolicy.Always.Whole {
			covers = "Every such action, " + bounds + ": "
		}
		shown, _ := visible.Line(v.CallPolicy.Always.Shown)
		return tool.Field{Label: alwaysLabel, Value: covers + shown}
	}
	covers = "Exactly the addresses above, as they are written: capitals count before the @ and not after it. " +
		"It counts whatever else is written, " + bounds + " for each address"
	if ap.Place != (tool.Place{}) {
		covers += ", from this account alone"
	}
	return tool.Field{Label: alwaysLabel, Value: covers + "."}
}

var (
	reviewDecisions = []run.Decision{run.ConfirmDone, run.StartNew}
	planDecisions   = []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Refine, run.Reject}
)

// kindOf returns the kind of decision that the user must make before the call runs.
func kindOf(s *run.State, a *run.Action) run.Kind {
	if s.Plan != nil && a.Tool == plan.ProposeTool {
		return run.KindPlan
	}
	return run.KindApproval
}

// decisions returns the decisions that the card offers. "Always allow" is left out if the policy would not store the
// recipients.
func decisions(tx *unit.Tx, t *tool.Tool, a *run.Action, kind run.Kind, verdict Judgement) ([]run.Decision,
	error) {
	switch kind {
	case run.KindReview:
		return reviewDecisions, nil
	case run.KindPlan:
		return planDecisions, nil
	}
	if a.AsksAlways() { // the user approves exactly the call on the card, or rejects it
		return []run.Decision{run.ApproveOnce, run.Reject}, nil
	}
	// the allowlist would not apply to the call, or the run does not know what its first run had read
	if verdict.Rule == policy.RuleTainted || tx.State.Input.DelegatedBy != nil || a.Reopens != nil {
		return []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Reject}, nil
	}
	if _, err := tx.Ex.Rules.CallEntry(tx.Run.UID, a.Tool, verdict.CallPolicy, tx.Now); err == nil {
		return []run.Decision{run.ApproveOnce, run.ApproveAlwaysCommand, run.ApproveEdited, run.Reject}, nil
	}
	targets, err := t.Targets(a.Args)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Ex.Rules.Entries(tx.Run.UID, a.Tool, a.Place, targets, tx.Now); err != nil {
		return []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Reject}, nil
	}
	return []run.Decision{run.ApproveOnce, run.ApproveAlways, run.ApproveEdited, run.Reject}, nil
}

// expiry returns the time at which a waiting call expires: an approval after its own time, a review with the run.
func expiry(tx *unit.Tx, kind run.Kind) time.Time {
	if at := tx.Now.Add(tx.Limits().ApprovalTTL); kind != run.KindReview && at.Before(tx.Run.Deadline) {
		return at
	}
	return tx.Run.Deadline
}

// Close gives an open approval its final status, and reduces the number of the user's open approvals for the agent.
func Close(tx *unit.Tx, id string, to run.ApprovalStatus, decision run.Decision) error {
	a, err := tx.Approval(id)
	if err != nil {
		return err
	}
	a.Status, a.Decision, a.DecidedAt = to, decision, tx.Now
	return tx.UpdateUser(func(u *run.User) { u.CloseApproval(a.Agent, tx.Now) })
}

// answerTTL is the default time for which a call waits for its client. The tool or the agent may set another.
const answerTTL = 5 * time.Minute

// Limits of the content of an approval, in bytes.
const (
	maxShown    = 8 << 10   // of a result, in a review
	maxSnapshot = 800 << 10 // of an approval's arguments and preview, which share one document
)
