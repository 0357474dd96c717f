package loop

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/store/document"
)

// reopenEarlier proposes the earlier calls again that the undone approval had rejected, in their order. Their runs may
// have ended, so each call gets a run of its own in the same conversation. A repeated undo starts no other run.
func reopenEarlier(ctx context.Context, l *Loop, undo approval.Resolution, newestFirst []run.EarlierCard) error {
	for _, card := range slices.Backward(newestFirst) {
		if err := reopen(ctx, l, undo, card.ApprovalID); err != nil {
			f := *fault.As(err)
			f.Message = fmt.Sprintf("Your approval was undone, and nothing was done. The earlier card “%s” stays "+
				"rejected: %s", card.Title, f.Message)
			return &f
		}
	}
	return nil
}

// reopen proposes the call of one earlier approval again, if the undone approval had rejected it.
func reopen(ctx context.Context, l *Loop, undo approval.Resolution, approvalID string) error {
	runID, _ := run.RunOfApproval(approvalID)
	of := l.NewExecution(runID, nil)
	path := document.ApprovalPath(approvalID)
	err := of.LoadOwned(ctx, undo.UID, path)
	if fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return nil // the run was deleted with its conversation
	}
	if err != nil {
		return err
	}
	var old run.Approval
	if err := document.Decode(of.Docs[path], &old); err != nil {
		return err
	}
	a := of.State.Action(old.ActionID)
	if a == nil || a.Status != run.ActionRejected || a.ReplacedBy != undo.ApprovalID {
		return nil
	}
	req := StartRequest{UID: undo.UID, Agent: of.Run.Agent, Origin: of.Run.Origin, ThreadID: of.Run.ThreadID,
		DelegatedBy: of.State.Input.DelegatedBy, Locale: of.Run.Locale,
		Key: "reopen:" + approvalID, BodyHash: old.ArgsHash}
	_, err = l.Start(ctx, req, Call{Prompt: "Ask me again about the earlier one.", Terminal: of.Run.Terminal,
		Tool: old.Tool, Args: old.Args, Model: of.State.Turns[a.Turn-1].Model,
		Reopens: &run.Reopened{ApprovalID: approvalID, Findings: old.Findings}})
	return err
}
