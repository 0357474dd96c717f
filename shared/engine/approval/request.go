// Package approval holds a call until its user has decided about it. It validates what the model asks for, evaluates
// the policy, stores what the user is to see, and records a decision only if it is about exactly that: a card that is
// not what its user would be shown now is refused and requested anew.
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
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Request opens an approval or a review for the action.
func Request(tx *journal.Tx, a *run.Action, kind run.Kind, reason string) error {
	ap, err := snapshot(tx, a, kind, reason)
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
	if known := tx.State.Action(a.ID); known.ArgsHash != ap.ArgsHash {
		wait.Args, wait.ArgsHash, wait.Place = ap.Args, ap.ArgsHash, ap.Place
	}
	if known := tx.State.Action(a.ID); !known.Ruled.Same(ap.Ruled) {
		wait.Ruled = ap.Ruled
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
	if err := tx.UpdateUser(func(u *run.User) { u.CountApproval(ap.Agent, tx.Now) }); err != nil {
		return err
	}
	return tx.AppendMessage(run.RoleAssistant, ap.ID, "%s", run.WaitingFor(a, ap.Preview.Title))
}

// Planned adds events of the run's session.
func Planned(tx *journal.Tx, events ...plan.Event) error {
	for _, e := range events {
		if err := tx.AddEvent(run.Event{Type: run.EventType(e.Type()), Planned: &e}); err != nil {
			return err
		}
	}
	return nil
}

// ClosePlan records why a plan waits no longer that was not confirmed, with what its user says.
func ClosePlan(tx *journal.Tx, approvalID string, how plan.How, words string) error {
	return Planned(tx, plan.Event{Closed: &plan.Closed{ApprovalID: approvalID, How: how, Words: words}})
}

// snapshot returns the approval as the user would see it if they were asked now.
func snapshot(tx *journal.Tx, a *run.Action, kind run.Kind, reason string) (*run.Approval, error) {
	ap := &run.Approval{Kind: kind, UID: tx.Run.UID, RunID: tx.Run.ID, ThreadID: tx.Run.ThreadID,
		Agent: tx.Run.AgentName(), ActionID: a.ID, Tool: a.Tool, Args: a.Args, ArgsHash: a.ArgsHash, Place: a.Place,
		Preview:     tool.Preview{Title: a.Tool},
		Reason:      reason,
		RequestedAt: tx.Now, ExpiresAt: expiry(tx, kind), Status: run.ApprovalOpen}
	t := tx.Ex.Toolbox.Proposed(tx.Run, tx.State, a.Tool)
	if t == nil { // a review outlives its tool
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
	ap.ToolVersion, ap.Rule, ap.Ruled = t.Version(), verdict.Rule, run.RuledBy(verdict.Ruling)
	ap.Findings = findings(verdict.Tainted)
	if ap.Preview, err = previewAt(t, a.Place, a.Args, verdict); err != nil {
		return nil, err
	}
	if kind == run.KindReview && a.Result != nil {
		ap.Preview.Fields = append(ap.Preview.Fields, returnedBefore(a.Result))
	}
	if slices.ContainsFunc(ap.Decisions, storesEntries) {
		ap.Preview.Fields = append(ap.Preview.Fields, alwaysCovers(ap, verdict))
	}
	if ap.TimeZone = tx.Run.Region.TimeZone; ap.TimeZone != "" {
		ap.Preview = ap.Preview.In(tx.Run.Region.Zone())
	}
	return ap, nil
}

// previewAt returns what a user reads before deciding: where the call acts, and then what the tool shows of it. Its
// first warning is of an equal call.
func previewAt(t *tool.Tool, in tool.Place, args json.RawMessage, v Judgement) (tool.Preview, error) {
	p, err := t.Preview(args)
	p = p.Warned(v.Ruling)
	if v.Repeated.words != "" {
		p.Warnings = append([]string{v.Repeated.words}, p.Warnings...)
		p.Moments = append(p.Moments, v.Repeated.at...)
	}
	if err != nil || in == (tool.Place{}) {
		return p, err
	}
	name, _ := visible.Line(in.Name)
	p.Fields = append([]tool.Field{{Label: in.Label, Value: name}}, p.Fields...)
	return p, nil
}

// returnedBefore returns the field for what a call returned before its outcome was lost, by which its user may tell.
func returnedBefore(result json.RawMessage) tool.Field {
	text := string(result)
	_ = json.Unmarshal(result, &text) // what is not a string is shown as JSON
	shown, _ := visible.Text(clip.Text(text, maxShown))
	return tool.Field{Label: "It returned before", Value: shown, Long: true}
}

// bounds are those of each permission that "always allow" stores.
var bounds = fmt.Sprintf("for %d days and up to %d times a day", int(policy.EntryLife/(24*time.Hour)),
	policy.UsedPerDay)

// alwaysLabel is the label of the field that alwaysCovers returns.
const alwaysLabel = "Always allow covers"

// alwaysCovers says what "always allow" would store, where it is offered (policy.Entry).
func alwaysCovers(ap *run.Approval, v Judgement) tool.Field {
	covers := "Exactly this, " + bounds + ": "
	if slices.Contains(ap.Decisions, run.ApproveAlwaysCommand) {
		shown, _ := visible.Line(v.Ruling.Always.Shown)
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

// kindOf returns what a call waits for that its user has to decide about before it is carried out.
func kindOf(s *run.State, a *run.Action) run.Kind {
	if s.Plan != nil && a.Tool == plan.ProposeTool {
		return run.KindPlan
	}
	return run.KindApproval
}

// decisions returns the decisions that are offered. "Always allow" is left out where the policy would not store the
// recipients.
func decisions(tx *journal.Tx, t *tool.Tool, a *run.Action, kind run.Kind, verdict Judgement) ([]run.Decision,
	error) {
	switch kind {
	case run.KindReview:
		return reviewDecisions, nil
	case run.KindPlan:
		return planDecisions, nil
	}
	if a.AsksAlways() { // exactly as it is shown, or not at all
		return []run.Decision{run.ApproveOnce, run.Reject}, nil
	}
	// what would be allowed always does not count for it
	if verdict.Rule == policy.RuleTainted || tx.State.Input.Via != nil {
		return []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Reject}, nil
	}
	if _, err := tx.Ex.Rules.CallEntry(tx.Run.UID, a.Tool, verdict.Ruling, tx.Now); err == nil {
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

// expiry returns when a waiting call is given up: an approval after its time, a review with the run.
func expiry(tx *journal.Tx, kind run.Kind) time.Time {
	if at := tx.Now.Add(tx.Limits().ApprovalTTL); kind != run.KindReview && at.Before(tx.Run.Deadline) {
		return at
	}
	return tx.Run.Deadline
}

// Close gives an open approval its final status and counts it out of those that its user has open of its agent.
func Close(tx *journal.Tx, id string, to run.ApprovalStatus, decision run.Decision) error {
	a, err := tx.Approval(id)
	if err != nil {
		return err
	}
	a.Status, a.Decision, a.DecidedAt = to, decision, tx.Now
	return tx.UpdateUser(func(u *run.User) { u.CloseApproval(a.Agent, tx.Now) })
}

// answerTTL is how long a call waits for its client unless the tool or the agent sets another time.
const answerTTL = 5 * time.Minute

// Bounds of what an approval shows and stores, in bytes.
const (
	maxShown    = 8 << 10   // of a result, in a review
	maxSnapshot = 800 << 10 // of an approval's arguments and preview, which share one document
)
