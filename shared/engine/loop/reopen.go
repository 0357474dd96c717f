package loop

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// An approval can reject earlier cards, which it replaces. If the user undoes the approval, the user gets those cards
// again. Their runs may have ended, so each call gets a run of its own in the same conversation.
//
// A process can die between the undo and these runs. So the undo's commit names the cards in its own run (Run.Reopens),
// and the run is due while it names any. The process that recorded the undo reopens the cards at once, and removes
// the names. If it dies first, the sweep asks another process to advance the run, and that process reopens them. A card
// is reopened once, however often this is tried, because its approval's ID is the key of the new run.

// reopenPause is the pause after which a card that could not be reopened is tried again. Tries end when the earlier
// card would have expired.
const reopenPause = 10 * time.Minute

// reopenEarlier proposes again the calls of the cards that the run names. The error is the first failure.
func (l *Loop) reopenEarlier(ctx context.Context, ex *unit.Execution) (failed error) {
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	if len(ex.Run.Reopens) == 0 {
		return nil
	}
	var settled []run.Replaced
	for _, card := range ex.Run.Reopens {
		err := l.reopen(ctx, ex.Run.UID, card)
		failed = cmp.Or(failed, err)
		if err == nil || !mayPass(err) {
			settled = append(settled, card)
		}
	}
	if err := forgetReopened(ctx, ex, settled); err != nil {
		ex.Log.WarnContext(ctx, "the reopened cards of a run could not be recorded, so the sweep looks at them again",
			"runId", ex.ID, "error", err)
	}
	return failed
}

// mayPass reports whether a later try may succeed: the store was unavailable, or a limit of the user was reached.
func mayPass(err error) bool {
	status := fault.As(err).Status()
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// forgetReopened removes the settled cards from the run. If cards remain, the run is due after a pause.
func forgetReopened(ctx context.Context, ex *unit.Execution, settled []run.Replaced) error {
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		st, _ := tx.Next()
		moves := st != run.StepDone && st != run.StepWait // leave the run free for the process that was asked
		tx.KeepLease = moves || tx.Run.Lease.Held(ex.Owner, tx.Now)
		tx.Changed, tx.RetryIn = len(tx.Run.Reopens) > 0, reopenPause
		tx.Run.Reopens = slices.DeleteFunc(slices.Clone(tx.Run.Reopens), func(card run.Replaced) bool {
			return slices.Contains(settled, card)
		})
		return nil
	})
}

// reopen proposes the call of one earlier card again, if that card is still rejected and would not have expired.
func (l *Loop) reopen(ctx context.Context, uid string, card run.Replaced) error {
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
