package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// maxMark is the maximum length of the mark of an earlier answer, in bytes.
const maxMark = 64

// maxComment is the maximum length of a comment on a decision, in bytes.
const maxComment = 2000

func getPending(r *request) (any, error) {
	limit, err := r.number("limit", 20, 1, 100)
	if err != nil {
		return nil, err
	}
	if err := r.awaitPending(r.URL.Query().Get("since")); err != nil {
		return nil, err
	}
	page, err := r.api.Records.PendingForReader(r.Context(), r.uid, r.URL.Query().Get("cursor"), int(limit))
	if err != nil {
		return nil, err
	}
	return struct {
		OK         bool               `json:"ok"`
		Approvals  []run.ApprovalView `json:"approvals"`
		Held       []run.ApprovalView `json:"held,omitempty"`
		NextCursor string             `json:"nextCursor,omitempty"`
		Mark       string             `json:"mark"`
	}{true, page.Approvals, page.Held, page.Next, page.Mark}, nil
}

// awaitPending waits, as long as the client prefers, until the user's pending approvals may differ from those of the
// earlier answer that mark stands for. It does not wait for a user who already holds the maximum number of requests
// open.
func (r *request) awaitPending(mark string) error {
	p := r.patience(maxWait)
	switch {
	case len(mark) > maxMark:
		return fault.Invalid("since", "not a value from an earlier response")
	case mark == "" || !p.preferred:
		return nil
	}
	r.w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", p.seconds))
	leave, free := r.api.holders.take(r.uid, r.api.heldMost())
	if !free {
		return nil
	}
	defer leave()
	ctx, cancel := context.WithDeadline(r.Context(), p.until)
	defer cancel()
	return r.api.Records.AwaitPending(ctx, r.uid, mark)
}

// resolutionBody is a decision about an approval, as a client sends it.
type resolutionBody struct {
	Decision   string          `json:"decision"`
	ArgsHash   *string         `json:"argsHash,omitempty"`
	EditedArgs json.RawMessage `json:"editedArgs,omitempty"`
	Comment    string          `json:"comment,omitempty"`
	UndoWindow int             `json:"holdSeconds,omitempty"`
	Strict     bool            `json:"strict,omitempty"`
	Passkey    json.RawMessage `json:"passkey,omitempty"` // AuthenticationResponseJSON
}

// of returns the user's decision about the approval.
func (b resolutionBody) of(uid, approvalID string) (approval.Resolution, error) {
	d, err := parseDecision(b.Decision)
	res := approval.Resolution{UID: uid, ApprovalID: approvalID, Decision: d, EditedArgs: b.EditedArgs,
		Comment: b.Comment, UndoWindow: time.Duration(b.UndoWindow) * time.Second, Strict: b.Strict}
	switch {
	case err != nil:
		return res, err
	case b.ArgsHash != nil && *b.ArgsHash == "": // an empty hash would count as absent and check nothing
		return res, fault.Invalid("argsHash", "invalid hash")
	case b.UndoWindow < 0 || b.UndoWindow > int(approval.MaxUndoWindow.Seconds()):
		return res, fault.Invalid("holdSeconds", "must be a number of seconds from 0 to %d",
			int(approval.MaxUndoWindow.Seconds()))
	case len(b.Comment) > longestComment(d):
		return res, fault.Invalid("comment", "the comment is longer than %d bytes", longestComment(d))
	case d == run.ApproveEdited && len(b.EditedArgs) == 0:
		return res, fault.Invalid("editedArgs", "approve_with_edits needs the edited arguments")
	case d != run.ApproveEdited && len(b.EditedArgs) > 0:
		return res, fault.Invalid("editedArgs", "only approve_with_edits takes arguments")
	}
	if b.ArgsHash != nil {
		res.ArgsHash = *b.ArgsHash
	}
	res.Passkey, err = parsePasskey(b.Passkey)
	return res, err
}

// parsePasskey decodes the passkey's confirmation of a decision. It returns nil if there is none.
func parsePasskey(data json.RawMessage) (*passkey.Assertion, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	return passkey.Parse(data)
}

func postResolve(r *request) (any, error) {
	p := r.patience(maxWait)
	var in struct {
		ApprovalID string   `json:"approvalId"`
		Rejects    []string `json:"rejects"`
		resolutionBody
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if !run.ValidID(in.ApprovalID) {
		return nil, fault.Invalid("approvalId", "invalid ID")
	}
	res, err := in.of(r.uid, in.ApprovalID)
	if err != nil {
		return nil, err
	}
	res.Rejects = in.Rejects
	ctx, cancel := r.working()
	defer cancel()
	v, err := r.resolve(ctx, res)
	if err != nil {
		return nil, err
	}
	obs.SetRun(ctx, v.RunID)
	answer, err := r.api.withApprovals(ctx, r.uid, r.settled(ctx, v, p))
	if err != nil {
		return nil, err
	}
	return struct {
		runAnswer
		ApprovalID string       `json:"approvalId"`
		Decision   run.Decision `json:"decision"`
	}{answer, in.ApprovalID, res.Decision}, nil
}

// resolve records a decision of the user, with how the user was authenticated.
func (r *request) resolve(ctx context.Context, d approval.Resolution) (*run.View, error) {
	runID, ok := run.RunOfApproval(d.ApprovalID)
	if !ok {
		return nil, fault.NotFound()
	}
	if f := r.api.Forward; f != nil {
		if err := f.record(ctx, r.Header.Get("Authorization"), d); err != nil {
			return nil, err
		}
		v, _, err := r.api.Loop.Get(ctx, r.uid, runID)
		return v, err
	}
	d.Auth = r.auth
	return r.api.Loop.Resolve(ctx, d)
}

// longestComment returns the maximum length of the comment, in bytes. With refine, the comment is the prompt for
// another plan.
func longestComment(d run.Decision) int {
	if d == run.Refine {
		return planner.MaxPrompt
	}
	return maxComment
}

// parseDecision parses a decision. It accepts only the contract's values.
func parseDecision(s string) (run.Decision, error) {
	switch d := run.Decision(s); d {
	case run.Reject, run.ApproveOnce, run.ApproveAlways, run.ApproveAlwaysCommand, run.ApproveEdited, run.ConfirmDone,
		run.StartNew, run.Refine, run.Undo:
		return d, nil
	}
	return "", fault.Invalid("decision", "one of reject, approve_once, approve_and_always_allow_recipient, "+
		"approve_and_always_allow_command, approve_with_edits, confirm_done, start_new, refine, undo is required")
}

// push reads a Pub/Sub push request.
func (r *request) push() (queue.Delivery, error) {
	data, err := r.body()
	if err != nil {
		return queue.Delivery{}, err
	}
	return queue.ParsePush(data, r.api.Subscription)
}
