// Package planner is the door of the planner (seed 004 §2.3): [Planner.StartPlanning], [Planner.RefinePlan] and
// [Planner.ExecutePlan], by which a Go program or the API begins a session, asks for another plan, and confirms exactly
// one. A session is a run of the agent that plans, so what moves it, keeps it and ends it is package loop; what a plan
// is and what may become of it is package plan.
package planner

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Planner begins sessions and takes what their users decide.
type Planner struct {
	Loop        *loop.Loop
	GitHubURL   string        // of the host whose repositories may be named, without a slash at its end
	MaxDeadline time.Duration // how far ahead a deadline may be

	// Repository reads what the model is told of the repository when a session begins. Its errors are AuthError for an
	// account that is not linked or does not see the repository.
	// Nil: a plan is made from the wish alone, and the model is told so.
	Repository func(ctx context.Context, uid string, repo plan.Repo) (Repository, error)
}

// A Repository is what the model is told of a repository when a session begins.
type Repository struct {
	State    string        // in words, as text from strangers
	Private  bool          // the repository is
	Excerpts []run.Excerpt // the files of which State has only the beginning
}

// MaxPrompt is the longest prompt and the longest refinement, in bytes.
const MaxPrompt = 32 << 10

// StartOptions is a user's wish.
type StartOptions struct {
	UID      string
	Prompt   string // at most MaxPrompt bytes
	RepoURL  string
	Deadline string // RFC 3339, 60 s to MaxDeadline ahead
	ThreadID string // empty: a new conversation

	ContinueFrom string // a session of the user's that has ended: what it left undone is the first revision

	Origin, Key, BodyHash string // as of loop.StartRequest
	Region                run.Region
	Email                 *string
}

// StartPlanning stores a session and has it planned, by whichever process moves the runs of its agent. Errors:
// ValidationError that names the field; AuthError not_found for a thread or a session that is not the user's;
// PolicyError for the caps and a key that was used otherwise; those of Repository.
func (p *Planner) StartPlanning(ctx context.Context, o StartOptions) (*run.View, error) {
	now := p.Loop.Now()
	switch {
	case visible.Blank(o.Prompt):
		return nil, fault.Invalid("prompt", "a prompt is needed")
	case len(o.Prompt) > MaxPrompt:
		return nil, fault.Invalid("prompt", "the prompt is longer than %d bytes", MaxPrompt)
	}
	repo, err := plan.ParseRepo(o.RepoURL, p.GitHubURL)
	if err != nil {
		return nil, err
	}
	in := loop.Session{Prompt: o.Prompt, Session: run.Session{Repo: repo}}
	if in.Deadline, err = plan.ParseDeadline(o.Deadline, now, p.MaxDeadline); err != nil {
		return nil, err
	}
	if o.ContinueFrom != "" {
		if in.Unfinished, err = p.unfinished(ctx, o, repo); err != nil {
			return nil, err
		}
		in.ContinueFrom = o.ContinueFrom
	}
	if p.Repository != nil {
		r, err := p.Repository(ctx, o.UID, repo)
		if err != nil {
			return nil, err
		}
		in.State, in.Private, in.Excerpts = r.State, r.Private, r.Excerpts
	}
	return p.Loop.Start(ctx, loop.StartRequest{UID: o.UID, Agent: run.Planner, Origin: o.Origin,
		ThreadID: o.ThreadID, Key: o.Key, BodyHash: o.BodyHash, Region: o.Region, Email: o.Email}, in)
}

// unfinished returns a plan of what the earlier session has left undone.
func (p *Planner) unfinished(ctx context.Context, o StartOptions, repo plan.Repo) (*plan.Plan, error) {
	s, err := p.Get(ctx, o.UID, o.ContinueFrom)
	if err != nil {
		return nil, err
	}
	state := s.PlanState()
	switch {
	case state.End == nil:
		return nil, fault.Invalid("continueFrom", "this plan has not ended")
	case state.Input.Session.Repo != repo:
		return nil, fault.Invalid("continueFrom", "this plan was about another repository")
	}
	var left plan.Plan
	if proposed := plan.Newest(state.Plan); state.Plan.Confirmed == nil && proposed != nil {
		return &plan.Plan{Tasks: proposed.Tasks, Assumptions: proposed.Assumptions}, nil
	}
	for _, t := range state.Plan.Tasks {
		if t.Status != plan.TaskCompleted && t.Status != plan.TaskObsolete {
			left.Tasks = append(left.Tasks, t.Task)
		}
	}
	if len(left.Tasks) == 0 {
		return nil, fault.Invalid("continueFrom", "this plan has left nothing undone")
	}
	if state.Plan.Plan != nil {
		left.Assumptions = state.Plan.Plan.Assumptions
	}
	return &left, nil
}

// Get returns the user's session as it is by the clock. Errors: AuthError not_found for every other run.
func (p *Planner) Get(ctx context.Context, uid, sessionID string) (*run.View, error) {
	v, _, err := p.Loop.Get(ctx, uid, sessionID)
	if err != nil {
		return nil, err
	}
	if v.PlanState() == nil {
		return nil, fault.NotFound()
	}
	return v, nil
}

// RefineOptions asks for another plan.
type RefineOptions struct {
	UID, SessionID   string
	RefinementPrompt string // at most MaxPrompt bytes
	ApprovalID       string // of the card that the words are about; optional
	PlanHash         string // of the plan that the words are about; optional
}

// RefinePlan closes the plan that waits and has another one made. Errors: AuthError not_found; ValidationError;
// PolicyError not_waiting while no plan waits, stale_view for another hash, already_resolved after the confirmation,
// too_many after the last revision.
func (p *Planner) RefinePlan(ctx context.Context, o RefineOptions) (*run.View, error) {
	switch {
	case visible.Blank(o.RefinementPrompt):
		return nil, fault.Invalid("refinementPrompt", "say what should be otherwise")
	case len(o.RefinementPrompt) > MaxPrompt:
		return nil, fault.Invalid("refinementPrompt", "it is longer than %d bytes", MaxPrompt)
	}
	id, err := p.card(ctx, o.UID, o.SessionID, o.ApprovalID, o.PlanHash, string(plan.Refined))
	if err != nil {
		return nil, err
	}
	return p.Loop.Resolve(ctx, approval.Resolution{UID: o.UID, ApprovalID: id, Decision: run.Refine,
		ArgsHash: o.PlanHash, Comment: o.RefinementPrompt})
}

// ExecuteOptions is a user's yes to exactly one plan.
type ExecuteOptions struct {
	UID, SessionID string
	ApprovalID     string          // of the card that the user saw; see Confirm
	PlanHash       string          // of the plan that the user saw
	EditedPlan     json.RawMessage // what they have made of it; nil: nothing
	Strict         bool            // every change of the plan is asked about
}

// Confirm confirms the plan that waits and has it carried out, and returns at once. The same confirmation again is
// about the same card and gets the same answer, whatever waits by then. A hash alone names no card where an earlier one
// with this plan got a yes: stale_view. Errors: AuthError not_found; ValidationError for a hash that is missing or an
// edited plan that does not fit; PolicyError not_waiting, stale_view, expired, already_resolved, denied.
func (p *Planner) Confirm(ctx context.Context, o ExecuteOptions) (*run.View, error) {
	if o.PlanHash == "" {
		return nil, fault.Invalid("planHash", "the hash of the plan that you saw is needed")
	}
	id, err := p.card(ctx, o.UID, o.SessionID, o.ApprovalID, o.PlanHash, plan.TypeConfirmed, string(plan.Replaced))
	if err != nil {
		return nil, err
	}
	r := approval.Resolution{UID: o.UID, ApprovalID: id, Decision: run.ApproveOnce, ArgsHash: o.PlanHash,
		Strict: o.Strict}
	if o.EditedPlan != nil {
		r.Decision, r.EditedArgs = run.ApproveEdited, o.EditedPlan
	}
	v, err := p.Loop.Resolve(ctx, r)
	return v, ofPlan(err)
}

// ofPlan returns the error of a decision with its field named as in ExecuteOptions.
func ofPlan(err error) error {
	if err == nil || !strings.HasPrefix(fault.As(err).Field, "editedArgs") {
		return err
	}
	f := *fault.As(err)
	f.Field = "editedPlan" + strings.TrimPrefix(f.Field, "editedArgs")
	return &f
}

// ExecutePlan confirms the plan and returns the session when it is over, or waits for its user again, or as it stands
// when ctx ends; then it goes on without the caller. Errors: those of Confirm.
func (p *Planner) ExecutePlan(ctx context.Context, o ExecuteOptions) (*run.View, error) {
	v, err := p.Confirm(ctx, o)
	if err != nil || !v.Moving {
		return v, err
	}
	return p.Wait(ctx, o.UID, v)
}

// Wait returns the session when the server goes on with it no longer by itself, or as it stands when ctx ends.
func (p *Planner) Wait(ctx context.Context, uid string, v *run.View) (*run.View, error) {
	last, err := p.Loop.AwaitRest(ctx, uid, v.RunID)
	if err != nil || last == nil {
		return v, err
	}
	reading, cancel := journal.Detached(ctx)
	defer cancel()
	return last.View(reading)
}

// card returns the approval that the answer is about ([plan.Answered]).
func (p *Planner) card(ctx context.Context, uid, sessionID, approvalID, hash string, answered ...string) (string,
	error) {
	v, err := p.Get(ctx, uid, sessionID)
	if err != nil {
		return "", err
	}
	return plan.Answered(v.PlanState().Plan, approvalID, hash, answered...)
}

// RevokeGrant takes a grant back (loop.Grants.Revoke).
func (p *Planner) RevokeGrant(ctx context.Context, uid, sessionID, grantID string) (*run.View, error) {
	if err := (loop.Grants{Loop: p.Loop}).Revoke(ctx, uid, sessionID, grantID); err != nil {
		return nil, err
	}
	return p.Get(ctx, uid, sessionID)
}

// A Listed is a session in a list.
type Listed struct {
	SessionID string      `json:"sessionId"`
	ThreadID  string      `json:"threadId"`
	Status    plan.Status `json:"status"`
	Revision  int         `json:"revision"`
	Prompt    string      `json:"prompt"` // its beginning
	RepoURL   plan.Repo   `json:"repoUrl"`
	Deadline  time.Time   `json:"deadline"`
	CreatedAt time.Time   `json:"createdAt"`
	UpdatedAt time.Time   `json:"updatedAt"`
}

// List returns the user's newest sessions, at most run.MaxSessions, the newest first: two round trips.
func (p *Planner) List(ctx context.Context, uid string) ([]Listed, error) {
	var u run.User
	docs, err := p.Loop.Store.Get(ctx, document.UserPath(uid))
	if err != nil {
		return nil, journal.StoreError(err)
	}
	if docs[0].Exists() {
		if err := document.Decode(docs[0], &u); err != nil {
			return nil, err
		}
	}
	listed := []Listed{}
	if len(u.Sessions) == 0 {
		return listed, nil
	}
	var paths []string
	for _, id := range u.Sessions {
		paths = append(paths, document.RunPath(id))
	}
	if docs, err = p.Loop.Store.Get(ctx, paths...); err != nil {
		return nil, journal.StoreError(err)
	}
	for _, d := range docs {
		var r run.Run
		if !d.Exists() { // its conversation was deleted
			continue
		}
		if err := document.Decode(d, &r); err != nil {
			return nil, err
		}
		if r.UID == uid && r.Plan != nil {
			listed = append(listed, Listed{r.ID, r.ThreadID, r.Plan.Status, r.Plan.Revision, r.Plan.Prompt, r.Plan.Repo,
				r.Deadline, r.CreatedAt, r.UpdatedAt})
		}
	}
	return listed, nil
}
