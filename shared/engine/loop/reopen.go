package loop

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/document"
)

// reopening returns the function with which unit.Env proposes the call of an earlier card again (effect.ReopenEarlier).
func reopening(l *Loop) func(ctx context.Context, uid string, card run.Replaced) error {
	return func(ctx context.Context, uid string, card run.Replaced) error { return reopen(ctx, l, uid, card) }
}

// reopen proposes the call of one earlier card again, if that card is still rejected and would not have expired.
func reopen(ctx context.Context, l *Loop, uid string, card run.Replaced) error {
	runID, _ := run.RunOfApproval(card.ApprovalID)
	of := l.NewExecution(runID, nil)
	path := document.ApprovalPath(card.ApprovalID)
	err := of.LoadOwned(ctx, uid, path)
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
	if a == nil || a.Status != run.ActionRejected || a.ReplacedBy != card.By || !of.Now().Before(old.ExpiresAt) {
		return nil
	}
	req := StartRequest{UID: uid, Agent: of.Run.Agent, Origin: of.Run.Origin, ThreadID: of.Run.ThreadID,
		DelegatedBy: of.State.Input.DelegatedBy, Locale: of.Run.Locale,
		Key: "reopen:" + old.ID, BodyHash: old.ArgsHash}
	_, err = l.Start(ctx, req, Call{Prompt: "Ask me again about the earlier one.", Terminal: of.Run.Terminal,
		Tool: old.Tool, Args: old.Args, Model: of.State.Turns[a.Turn-1].Model,
		Reopens: &run.Reopened{ApprovalID: old.ID, Findings: old.Findings}})
	if err == nil {
		return nil
	}
	f := *fault.As(err)
	f.Message = fmt.Sprintf("Your approval was undone, and nothing was done. The earlier card “%s” stays rejected: %s",
		old.Preview.Title, f.Message)
	return &f
}
