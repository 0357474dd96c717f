// Package planner is the interface of the planner (seed 004 §2.3). With [Planner.StartPlanning], [Planner.RefinePlan]
// and [Planner.ExecutePlan], a Go program or the API starts a session, requests another plan, and confirms exactly one
// plan. A session is a run of the planning agent, so package loop advances, stores and ends it. Package plan defines
// plans and their states.
package planner

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Planner starts sessions and records the decisions of their users.
type Planner struct {
	Loop        *loop.Loop
	GitHubURL   string        // URL of the host of all permitted repositories, without a trailing slash
	MaxDeadline time.Duration // maximum time from the start of a session to its deadline

	// Repository reads the repository's data for the model when a session starts. It returns AuthError for an account
	// that is not linked or has no access to the repository. If it is nil, plans are made from the prompt only, and the
	// model gets a note that says so.
	Repository func(ctx context.Context, uid string, repo plan.Repo) (Repository, error)

	// Comments returns the comments that the user's linked account has written on the lines of a pull request, oldest
	// first, of its first 500 comments. The caller sets PullRequest and Words. It is nil where Repository is.
	Comments func(ctx context.Context, uid string, repo plan.Repo, number int) ([]Comment, error)
}

// A Repository is a repository's data for the model at the start of a session.
type Repository struct {
	State    string        // a description, which is text from strangers
	Private  bool          // whether the repository is private
	Excerpts []run.Excerpt // files whose beginning alone is in State
}

// MaxPrompt is the maximum length of a prompt and of a refinement, in bytes.
const MaxPrompt = 32 << 10

// StartOptions is a user's request for a plan.
type StartOptions struct {
	UID      string
	Prompt   string // at most MaxPrompt bytes
	RepoURL  string
	Deadline string // RFC 3339, from 60 s to MaxDeadline in the future
	ThreadID string // empty: a new conversation

	ContinueFrom string // ID of an ended session of the user; its unfinished tasks are the first revision

	Files []attachment.File // for the model; types checked by the caller

	Origin, Key, BodyHash string // see loop.StartRequest
	Locale                run.Locale
	Email                 *string
}

// StartPlanning stores a session. The process that advances the runs of the planning agent makes the plan. Errors:
// ValidationError with the field's name; AuthError not_found for a thread or a session that is not the user's;
// PolicyError for limits and for a key of another request; the errors of Repository.
func (p *Planner) StartPlanning(ctx context.Context, o StartOptions) (*run.View, error) {
	now := p.Loop.Now()
	switch {
	case visible.Blank(o.Prompt):
		return nil, fault.Invalid("prompt", "a prompt is required")
	case len(o.Prompt) > MaxPrompt:
		return nil, fault.Invalid("prompt", "%d bytes; the limit is %d", len(o.Prompt), MaxPrompt)
	}
	repo, err := plan.ParseRepo(o.RepoURL, p.GitHubURL)
	if err != nil {
		return nil, err
	}
	in := loop.Session{Prompt: o.Prompt, Files: o.Files, Session: run.Session{Repo: repo}}
	if in.Deadline, err = plan.ParseDeadline(o.Deadline, now, p.MaxDeadline); err != nil {
		return nil, err
	}
	if o.ContinueFrom != "" {
		if in.Unfinished, in.FilesBefore, err = p.unfinished(ctx, o, repo); err != nil {
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
		ThreadID: o.ThreadID, Key: o.Key, BodyHash: o.BodyHash, Locale: o.Locale, Email: o.Email}, in)
}

// unfinished returns a plan with the unfinished tasks of the earlier session, and whether that session had read a file.
func (p *Planner) unfinished(ctx context.Context, o StartOptions, repo plan.Repo) (_ *plan.Plan, files bool,
	err error) {
	s, err := p.Get(ctx, o.UID, o.ContinueFrom)
	if err != nil {
		return nil, false, err
	}
	left, err := unfinishedOf(s, repo)
	in := s.PlanState().Input
	return left, in.FilesBefore || len(in.Files) > 0, err
}

func unfinishedOf(s *run.View, repo plan.Repo) (*plan.Plan, error) {
	state := s.PlanState()
	switch {
	case state.End == nil:
		return nil, fault.Invalid("continueFrom", "this plan has not ended")
	case state.Input.Session.Repo != repo:
		return nil, fault.Invalid("continueFrom", "this plan is about another repository")
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
		return nil, fault.Invalid("continueFrom", "this plan has no unfinished tasks")
	}
	if state.Plan.Plan != nil {
		left.Assumptions = state.Plan.Plan.Assumptions
	}
	return &left, nil
}

// Get returns the user's session at the present time. It returns AuthError not_found for any other run.
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

// RefineOptions is a user's request for another plan.
type RefineOptions struct {
	UID, SessionID   string
	RefinementPrompt string            // at most MaxPrompt bytes
	ApprovalID       string            // the approval of the plan that the user has seen; optional
	PlanHash         string            // the hash of that plan; optional
	Files            []attachment.File // for the model; types checked by the caller
}

// RefinePlan closes the waiting plan and requests another plan. Errors: AuthError not_found; ValidationError;
// PolicyError not_waiting if no plan waits, stale_view for another hash, already_resolved after the confirmation,
// too_many after the last revision.
func (p *Planner) RefinePlan(ctx context.Context, o RefineOptions) (*run.View, error) {
	switch {
	case visible.Blank(o.RefinementPrompt):
		return nil, fault.Invalid("refinementPrompt", "a refinement is required")
	case len(o.RefinementPrompt) > MaxPrompt:
		return nil, fault.Invalid("refinementPrompt", "%d bytes; the limit is %d", len(o.RefinementPrompt), MaxPrompt)
	}
	id, err := p.card(ctx, o.UID, o.SessionID, o.ApprovalID, o.PlanHash, string(plan.Refined))
	if err != nil {
		return nil, err
	}
	return p.Loop.Resolve(ctx, approval.Resolution{UID: o.UID, ApprovalID: id, Decision: run.Refine,
		ArgsHash: o.PlanHash, Comment: o.RefinementPrompt, Files: o.Files})
}

// ExecuteOptions is a user's confirmation of exactly one plan.
type ExecuteOptions struct {
	UID, SessionID string
	ApprovalID     string             // the approval of the plan that the user has seen; see Confirm
	PlanHash       string             // the hash of that plan
	EditedPlan     json.RawMessage    // the plan with the user's changes; nil: no changes
	Strict         bool               // every change of the plan needs an approval
	Auth           decision.Auth      // how the user was authenticated
	Passkey        *passkey.Assertion // the passkey's confirmation; nil: none
}

// Confirm confirms the waiting plan and returns before its execution. A repeated confirmation applies to the same
// approval and gets the same answer, whatever waits by then. If an earlier approval showed the same plan, the hash
// alone does not identify the approval, and Confirm returns stale_view. Errors: AuthError not_found;
// ValidationError for a missing hash or an invalid edited plan; PolicyError not_waiting, stale_view, expired,
// already_resolved, denied.
func (p *Planner) Confirm(ctx context.Context, o ExecuteOptions) (*run.View, error) {
	if o.PlanHash == "" {
		return nil, fault.Invalid("planHash", "the hash of the plan that you have seen is required")
	}
	id, err := p.card(ctx, o.UID, o.SessionID, o.ApprovalID, o.PlanHash, plan.TypeConfirmed, string(plan.Replaced))
	if err != nil {
		return nil, err
	}
	r := approval.Resolution{UID: o.UID, ApprovalID: id, Decision: run.ApproveOnce, ArgsHash: o.PlanHash,
		Strict: o.Strict, Auth: o.Auth, Passkey: o.Passkey}
	if o.EditedPlan != nil {
		r.Decision, r.EditedArgs = run.ApproveEdited, o.EditedPlan
	}
	v, err := p.Loop.Resolve(ctx, r)
	return v, ofPlan(err)
}

// ofPlan returns a decision's error with the field name of ExecuteOptions.
func ofPlan(err error) error {
	if err == nil || !strings.HasPrefix(fault.As(err).Field, "editedArgs") {
		return err
	}
	f := *fault.As(err)
	f.Field = "editedPlan" + strings.TrimPrefix(f.Field, "editedArgs")
	return &f
}

// ExecutePlan confirms the plan. It returns the session when the session has ended or waits for the user again, or when
// ctx ends; then the session continues without the caller. Errors: those of Confirm.
func (p *Planner) ExecutePlan(ctx context.Context, o ExecuteOptions) (*run.View, error) {
	v, err := p.Confirm(ctx, o)
	if err != nil || !v.Moving {
		return v, err
	}
	return p.Wait(ctx, o.UID, v)
}

// Wait returns the session when the server no longer continues it on its own, or when ctx ends.
func (p *Planner) Wait(ctx context.Context, uid string, v *run.View) (*run.View, error) {
	last, err := p.Loop.AwaitRest(ctx, uid, v.RunID)
	if err != nil || last == nil {
		return v, err
	}
	reading, cancel := unit.Detached(ctx)
	defer cancel()
	return last.View(reading)
}

// card returns the ID of the approval that the user's answer applies to ([plan.Answered]).
func (p *Planner) card(ctx context.Context, uid, sessionID, approvalID, hash string, answered ...string) (string,
	error) {
	v, err := p.Get(ctx, uid, sessionID)
	if err != nil {
		return "", err
	}
	return plan.Answered(v.PlanState().Plan, approvalID, hash, answered...)
}

// RevokeGrant revokes a grant of the session ([loop.Grants.Revoke]).
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
	Prompt    string      `json:"prompt"` // the beginning of the prompt
	RepoURL   plan.Repo   `json:"repoUrl"`
	Deadline  time.Time   `json:"deadline"`
	CreatedAt time.Time   `json:"createdAt"`
	UpdatedAt time.Time   `json:"updatedAt"`
}

// List returns the user's newest sessions, newest first, at most run.MaxSessions. It takes two round trips.
func (p *Planner) List(ctx context.Context, uid string) ([]Listed, error) {
	var u run.User
	docs, err := p.Loop.Store.Get(ctx, document.UserPath(uid))
	if err != nil {
		return nil, unit.StoreError(err)
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
		return nil, unit.StoreError(err)
	}
	for _, d := range docs {
		var r run.Run
		if !d.Exists() { // the conversation was deleted
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
