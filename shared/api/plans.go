package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// onPlans serves a route of plans. In a program without plans the path does not exist.
func onPlans(h func(r *request, of *planner.Planner) (any, error)) handler {
	return reading(func(r *request) (any, error) {
		if r.api.Plans == nil {
			return nil, errNoSuchPath()
		}
		return h(r, r.api.Plans)
	})
}

// session returns the session as its user sees it, with its waiting approvals.
func (r *request) session(ctx context.Context, v *run.View) (*planner.Session, error) {
	obs.SetRun(ctx, v.RunID)
	answer, err := r.api.withApprovals(ctx, r.uid, v)
	if err != nil {
		return nil, err
	}
	return planner.View(v, answer.Approvals)
}

// rested waits for the session as long as the client prefers, and answers 202 if it still moves.
func (r *request) rested(ctx context.Context, v *run.View, p patience) (any, error) {
	v = r.settled(ctx, v, p)
	s, err := r.session(ctx, v)
	switch {
	case err != nil:
		return nil, err
	case v.Moving:
		return accepted{s}, nil
	}
	return s, nil
}

func postPlan(r *request, of *planner.Planner) (any, error) {
	p := r.patience(maxPlanWait)
	var in struct {
		Prompt       string         `json:"prompt"`
		RepoURL      string         `json:"repoUrl"`
		Deadline     string         `json:"deadline"`
		ThreadID     *string        `json:"threadId"`
		ContinueFrom *string        `json:"continueFrom"`
		Attachments  []attachedBody `json:"attachments"`
		localeBody
	}
	hash, err := r.decode(&in)
	if err != nil {
		return nil, err
	}
	key, err := r.key()
	locale, wrong := in.locale()
	files, wrongFile := filesOf(in.Attachments)
	switch {
	case in.ThreadID != nil && !run.ValidID(*in.ThreadID):
		return nil, fault.Invalid("threadId", "invalid ID")
	case in.ContinueFrom != nil && !run.ValidID(*in.ContinueFrom):
		return nil, fault.Invalid("continueFrom", "invalid ID")
	case wrong != nil:
		return nil, wrong
	case wrongFile != nil:
		return nil, wrongFile
	case err != nil:
		return nil, err
	}
	o := planner.StartOptions{UID: r.uid, Prompt: in.Prompt, RepoURL: in.RepoURL, Deadline: in.Deadline,
		Files: files, Origin: r.Header.Get("Origin"), Key: key, BodyHash: hash, Locale: locale, Email: r.email}
	if in.ThreadID != nil {
		o.ThreadID = *in.ThreadID
	}
	if in.ContinueFrom != nil {
		o.ContinueFrom = *in.ContinueFrom
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := of.StartPlanning(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.rested(ctx, v, p)
}

func getPlans(r *request, of *planner.Planner) (any, error) {
	listed, err := of.List(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Sessions []planner.Listed `json:"sessions"`
	}{ok{true}, listed}, nil
}

func getPlan(r *request, of *planner.Planner) (any, error) {
	id, err := r.id("sessionId")
	if err != nil {
		return nil, err
	}
	v, err := of.Get(r.Context(), r.uid, id)
	if err != nil {
		return nil, err
	}
	return r.session(r.Context(), v)
}

// getReviews lists the user's own comments on the session's pull requests.
func getReviews(r *request, of *planner.Planner) (any, error) {
	id, err := r.id("sessionId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	comments, err := of.Reviews(ctx, r.uid, id)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Comments []planner.Comment `json:"comments"`
	}{ok{true}, comments}, nil
}

func postRefine(r *request, of *planner.Planner) (any, error) {
	p := r.patience(maxPlanWait)
	id, err := r.id("sessionId")
	if err != nil {
		return nil, err
	}
	var in struct {
		RefinementPrompt string         `json:"refinementPrompt"`
		ApprovalID       string         `json:"approvalId"`
		PlanHash         *string        `json:"planHash"`
		Attachments      []attachedBody `json:"attachments"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	files, err := filesOf(in.Attachments)
	if err != nil {
		return nil, err
	}
	o := planner.RefineOptions{UID: r.uid, SessionID: id, ApprovalID: in.ApprovalID,
		RefinementPrompt: in.RefinementPrompt, Files: files}
	if in.PlanHash != nil {
		if o.PlanHash = *in.PlanHash; o.PlanHash == "" { // an empty hash would count as absent and check nothing
			return nil, fault.Invalid("planHash", "invalid hash")
		}
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := of.RefinePlan(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.rested(ctx, v, p)
}

func postExecute(r *request, of *planner.Planner) (any, error) {
	p := r.patience(maxPlanWait)
	id, err := r.id("sessionId")
	if err != nil {
		return nil, err
	}
	var in struct {
		ApprovalID string          `json:"approvalId"`
		PlanHash   string          `json:"planHash"`
		EditedPlan json.RawMessage `json:"editedPlan"`
		Strict     bool            `json:"strict"`
		Passkey    json.RawMessage `json:"passkey"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	confirmed, err := parsePasskey(in.Passkey)
	if err != nil {
		return nil, err
	}
	o := planner.ExecuteOptions{UID: r.uid, SessionID: id, ApprovalID: in.ApprovalID, PlanHash: in.PlanHash,
		EditedPlan: in.EditedPlan, Strict: in.Strict, Auth: r.auth, Passkey: confirmed}
	ctx, cancel := r.working()
	defer cancel()
	if r.accepts("application/x-ndjson") {
		return streaming(func(r *request) (any, error) { return nil, r.execute(ctx, of, o) })(r)
	}
	v, err := of.Confirm(ctx, o)
	if err != nil {
		return nil, err
	}
	return r.rested(ctx, v, p)
}

// beforeEnd is how long before the function's time is up a plan's stream ends. Its last line tells the client where to
// continue.
const beforeEnd = 10 * time.Second

// continueLine is the last line of a plan's stream that ends before its session does.
type continueLine struct {
	Type  string `json:"type"`
	After int64  `json:"after"` // number of the last event sent
}

// execute confirms the plan and streams the session's events from the confirmation on.
func (r *request) execute(ctx context.Context, of *planner.Planner, o planner.ExecuteOptions) error {
	v, err := of.Confirm(ctx, o)
	if err != nil {
		return err
	}
	obs.SetRun(ctx, v.RunID)
	after, err := r.beforeConfirmation(ctx, v.RunID)
	if err != nil {
		return err
	}
	end, _ := ctx.Deadline()
	watching, cancel := context.WithDeadline(r.Context(), end.Add(-beforeEnd))
	defer cancel()
	out := &jsonStream{w: r.w, format: ndjson, lost: cancel}
	last, ended, err := r.sendEvents(watching, out, v.RunID, after)
	if err == nil && !ended {
		out.write(continueLine{"continue", last})
	}
	return err
}

// beforeConfirmation returns the number of the event before the session's last confirmation.
func (r *request) beforeConfirmation(ctx context.Context, id string) (int64, error) {
	_, events, err := r.api.Loop.Get(ctx, r.uid, id)
	if err != nil {
		return 0, err
	}
	for _, e := range slices.Backward(events) {
		if e.Type == run.PlanConfirmed {
			return e.Seq - 1, nil
		}
	}
	return 0, nil
}

func deleteGrant(r *request, of *planner.Planner) (any, error) {
	id, err := r.id("sessionId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := of.RevokeGrant(ctx, r.uid, id, r.PathValue("grantId"))
	if err != nil {
		return nil, err
	}
	return r.session(ctx, v)
}
