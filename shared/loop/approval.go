package loop

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// requestApproval opens an approval or a review for the action.
func (tx *tx) requestApproval(a *run.Action, kind run.Kind, reason string) error {
	ap, err := tx.snapshot(a, kind, reason)
	if err != nil {
		return err
	}
	tx.run.Approvals++
	ap.ID = run.ApprovalID(tx.run.ID, tx.run.Approvals)
	tx.approvals[ap.ID] = ap
	wait := &run.Wait{ApprovalID: ap.ID, Kind: kind, ExpiresAt: ap.ExpiresAt}
	if known := tx.state.Action(a.ID); known.ArgsHash != ap.ArgsHash {
		wait.Args, wait.ArgsHash, wait.Place = ap.Args, ap.ArgsHash, ap.Place
	}
	if err := tx.addEvent(run.Event{Type: run.ActionWaits, ActionID: a.ID, Wait: wait}); err != nil {
		return err
	}
	a = tx.state.Action(a.ID)
	tx.addAudit(audit.Requested, a, func(e *audit.Entry) { e.Decision = string(kind) })
	if err := tx.updateUser(func(u *run.User) { u.CountApproval(tx.now) }); err != nil {
		return err
	}
	return tx.appendMessage(run.RoleAssistant, ap.ID, "%s", tx.ex.waitingFor(a))
}

// snapshot returns the approval as the user would see it if they were asked now.
func (tx *tx) snapshot(a *run.Action, kind run.Kind, reason string) (*run.Approval, error) {
	decisions, err := tx.decisions(a, kind)
	if err != nil {
		return nil, err
	}
	ap := &run.Approval{Kind: kind, UID: tx.run.UID, RunID: tx.run.ID, ThreadID: tx.run.ThreadID, ActionID: a.ID,
		Tool: a.Tool, Args: a.Args, ArgsHash: a.ArgsHash, Place: a.Place, Preview: tool.Preview{Title: a.Tool},
		Reason: reason, Decisions: decisions,
		RequestedAt: tx.now, ExpiresAt: tx.expiry(kind), Status: run.ApprovalOpen}
	t := tx.ex.Tools[a.Tool]
	if t == nil { // a review outlives its tool
		return ap, nil
	}
	if ap.Preview, err = previewAt(t, a.Place, a.Args); err != nil {
		return nil, err
	}
	if kind == run.KindReview && a.Result != nil {
		ap.Preview.Fields = append(ap.Preview.Fields, returnedBefore(a.Result))
	}
	if slices.Contains(decisions, run.ApproveAlways) {
		ap.Preview.Fields = append(ap.Preview.Fields, alwaysCovers)
	}
	if ap.TimeZone = tx.run.Region.TimeZone; ap.TimeZone != "" {
		ap.Preview = ap.Preview.In(tx.run.Region.Zone())
	}
	verdict, err := tx.verdict(t, a.Args)
	if err != nil {
		return nil, err
	}
	ap.ToolVersion, ap.Rule = t.Version(), verdict.Rule
	return ap, nil
}

// previewAt returns what a user reads before deciding: where the call acts, and then what the tool shows of it.
func previewAt(t *tool.Tool, in tool.Place, args json.RawMessage) (tool.Preview, error) {
	p, err := t.Preview(args)
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

// alwaysCovers tells what "always allow" would store, where it is offered (policy.Entry).
var alwaysCovers = tool.Field{Label: "Always allow covers",
	Value: "Exactly the addresses above, as they are written: capitals count before the @ and not after it."}

// decisions returns the decisions that are offered. "Always allow" is left out where the policy would not store the
// recipients.
func (tx *tx) decisions(a *run.Action, kind run.Kind) ([]run.Decision, error) {
	if kind == run.KindReview {
		return []run.Decision{run.ConfirmDone, run.StartNew}, nil
	}
	targets, err := tx.ex.Tools[a.Tool].Targets(a.Args)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ex.Rules.Entries(tx.run.UID, a.Tool, targets, tx.now); err != nil {
		return []run.Decision{run.ApproveOnce, run.ApproveEdited, run.Reject}, nil
	}
	return []run.Decision{run.ApproveOnce, run.ApproveAlways, run.ApproveEdited, run.Reject}, nil
}

// expiry returns when a waiting call is given up: an approval after its time, a review with the run.
func (tx *tx) expiry(kind run.Kind) time.Time {
	if at := tx.now.Add(tx.limits().ApprovalTTL); kind == run.KindApproval && at.Before(tx.run.Deadline) {
		return at
	}
	return tx.run.Deadline
}
