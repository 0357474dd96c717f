package planner

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// A Session is a session as its user sees it (seed 004 §2.2): made from the record alone.
type Session struct {
	OK         bool               `json:"ok"`
	SessionID  string             `json:"sessionId"` // the run's
	RunID      string             `json:"runId"`
	ThreadID   string             `json:"threadId"`
	Status     plan.Status        `json:"status"`
	Prompt     string             `json:"prompt"`
	RepoURL    plan.Repo          `json:"repoUrl"`
	Deadline   time.Time          `json:"deadline"`
	Revision   int                `json:"revision"`           // of the plan that was proposed last; 0: none yet
	PlanHash   string             `json:"planHash,omitempty"` // of the plan that waits, or else of the confirmed one
	RawPlan    string             `json:"rawPlan"`            // of that plan as it stands: JSON in a string
	Tasks      []Task             `json:"tasks"`
	Questions  []string           `json:"questions"`
	Grants     []Grant            `json:"grants"`
	Changes    []plan.Change      `json:"changes"` // that applied at once, oldest first
	Approvals  []run.ApprovalView `json:"approvals"`
	Artifacts  []string           `json:"artifacts"` // addresses that completed effects have returned
	Log        []plan.LogEntry    `json:"log"`
	Summary    string             `json:"summary"`
	ErrorCode  string             `json:"errorReason,omitempty"` // why it ended before it was done
	ModelCalls int                `json:"modelCalls"`
	Usage      model.Usage        `json:"usage"`
	LastEvent  int64              `json:"lastEvent"`
	CreatedAt  time.Time          `json:"createdAt"`
	UpdatedAt  time.Time          `json:"updatedAt"`
}

// A Task is a task of the plan as its user sees it.
type Task struct {
	SessionID       string          `json:"sessionId"`
	ID              string          `json:"id"`
	Title           string          `json:"title"`
	Goal            string          `json:"goal"`
	Status          plan.TaskStatus `json:"status"`
	Tools           []string        `json:"tools"`
	Effects         []string        `json:"effects"`
	DoneWhen        string          `json:"doneWhen"`
	Result          string          `json:"result,omitempty"`
	Error           string          `json:"error,omitempty"`
	RawReactHistory string          `json:"rawReactHistory"` // [{reason, action, observation}]: JSON in a string
}

// A Grant is a grant of the confirmed plan and what is left of it, or one of the plan that waits.
type Grant struct {
	plan.Grant
	Words   string        `json:"words"`   // what it allows, for people (plan.Grant.Sentence), by the run's time zone
	Moments []tool.Moment `json:"moments"` // in the words
	Used    int           `json:"used"`
	Revoked bool          `json:"revoked"`
}

// View returns the session as its user sees it, with the approvals that it waits for. The run must be a session's.
func View(v *run.View, waiting []run.ApprovalView) (*Session, error) {
	state := v.PlanState()
	of, in, zone := state.Plan, state.Input, run.Region{TimeZone: v.TimeZone}.Zone()
	s := &Session{OK: true, SessionID: v.RunID, RunID: v.RunID, ThreadID: v.ThreadID, Status: of.Status(),
		Prompt: in.Prompt, RepoURL: in.Session.Repo, Deadline: in.Session.Deadline, Revision: of.Revision,
		Tasks: []Task{}, Questions: []string{}, Grants: []Grant{}, Changes: []plan.Change{},
		Approvals: append([]run.ApprovalView{}, waiting...), Artifacts: artifacts(state), Log: of.Log(),
		Summary: v.Summary, ErrorCode: string(v.ErrorReason), ModelCalls: of.ModelCalls, Usage: v.Usage,
		LastEvent: v.LastEvent, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt}
	for _, c := range of.Changes {
		s.Changes = append(s.Changes, c.Changes...)
	}
	raw, err := of.RawPlan()
	if err != nil {
		return nil, err
	}
	s.RawPlan = raw
	if of.Confirmed != nil {
		s.PlanHash = of.Confirmed.Hash
		s.Questions = append(s.Questions, of.Plan.Questions...)
	}
	for _, t := range of.Tasks {
		history, err := t.RawReactHistory()
		if err != nil {
			return nil, err
		}
		task := viewTask(v.RunID, t.Task, t.Status)
		task.Result, task.Error, task.RawReactHistory = t.Result, t.Error, history
		s.Tasks = append(s.Tasks, task)
	}
	for _, g := range of.Grants() {
		s.Grants = append(s.Grants, Grant{g.Grant, g.Sentence(zone), []tool.Moment{g.Ends(zone)}, g.Used, g.Revoked})
	}
	if of.Proposal != nil {
		s.propose(of.Proposal, zone)
	}
	return s, nil
}

// propose shows the plan that waits: its hash, its grants and questions, and the tasks that it would add.
func (s *Session) propose(p *plan.Proposal, zone *time.Location) {
	s.PlanHash = p.Hash
	s.Questions, s.Grants = append([]string{}, p.Plan.Questions...), []Grant{}
	known := map[string]bool{}
	for _, t := range s.Tasks {
		known[t.ID] = true
	}
	for _, t := range p.Plan.Tasks {
		if !known[t.ID] {
			s.Tasks = append(s.Tasks, viewTask(s.SessionID, t, plan.TaskPending))
		}
	}
	for _, g := range p.Plan.Grants {
		s.Grants = append(s.Grants, Grant{Grant: g, Words: g.Sentence(zone), Moments: []tool.Moment{g.Ends(zone)}})
	}
}

func viewTask(sessionID string, t plan.Task, status plan.TaskStatus) Task {
	return Task{SessionID: sessionID, ID: t.ID, Title: t.Title, Goal: t.Goal, Status: status,
		Tools: append([]string{}, t.Tools...), Effects: append([]string{}, t.Effects...), DoneWhen: t.DoneWhen,
		RawReactHistory: "[]"}
}

// artifacts returns the addresses that the session's completed effects have returned, each once and in their order.
func artifacts(s *run.State) []string {
	out, seen := []string{}, map[string]bool{}
	for _, a := range s.Actions {
		if !a.SideEffect || a.Status != run.ActionCompleted {
			continue
		}
		var made struct {
			HTML string `json:"html_url"`
			URL  string `json:"url"`
		}
		if json.Unmarshal(a.Result, &made) != nil { // a result without one
			continue
		}
		for _, address := range []string{made.HTML, made.URL} {
			if address != "" && !seen[address] {
				out, seen[address] = append(out, address), true
				break
			}
		}
	}
	return out
}
