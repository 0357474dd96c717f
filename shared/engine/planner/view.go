package planner

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// A Session is a session in the form that its user sees (seed 004 §2.2). All data comes from the record.
type Session struct {
	OK          bool               `json:"ok"`
	SessionID   string             `json:"sessionId"` // equal to RunID
	RunID       string             `json:"runId"`
	ThreadID    string             `json:"threadId"`
	Status      plan.Status        `json:"status"`
	Prompt      string             `json:"prompt"`
	RepoURL     plan.Repo          `json:"repoUrl"`
	Deadline    time.Time          `json:"deadline"`
	Attachments []attachment.Facts `json:"attachments,omitempty"` // the files of the prompt and of the refinements
	Revision    int                `json:"revision"`              // number of the newest proposed plan; 0: none yet
	PlanHash    string             `json:"planHash,omitempty"`    // hash of the waiting plan, or else of the confirmed plan
	RawPlan     string             `json:"rawPlan"`               // the current plan: JSON in a string
	Tasks       []Task             `json:"tasks"`
	Questions   []string           `json:"questions"`
	Grants      []Grant            `json:"grants"`
	Changes     []plan.Change      `json:"changes"` // changes that applied without an approval, oldest first
	Approvals   []run.ApprovalView `json:"approvals"`
	Artifacts   []string           `json:"artifacts"` // URLs in the results of completed effects
	Log         []LogEntry         `json:"log"`
	Summary     string             `json:"summary"`
	Moments     []tool.Moment      `json:"moments,omitempty"`     // points in time that Summary mentions
	ErrorCode   string             `json:"errorReason,omitempty"` // why the session ended early
	ModelCalls  int                `json:"modelCalls"`
	Usage       model.Usage        `json:"usage"`
	LastEvent   int64              `json:"lastEvent"`
	CreatedAt   time.Time          `json:"createdAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
}

// A Task is a task of the plan in the form that the user sees.
type Task struct {
	SessionID       string          `json:"sessionId"`
	ID              string          `json:"id"`
	Title           string          `json:"title"`
	Goal            string          `json:"goal"`
	Status          plan.TaskStatus `json:"status"`
	Tools           []string        `json:"tools"`
	Effects         []string        `json:"effects"`
	DoneWhen        string          `json:"doneWhen"`
	GreenWithin     int             `json:"greenWithin,omitempty"` // tries until the checks are green
	Result          string          `json:"result,omitempty"`
	Error           string          `json:"error,omitempty"`
	Moments         []tool.Moment   `json:"moments,omitempty"` // points in time that Error mentions
	RawReactHistory string          `json:"rawReactHistory"`   // [{reason, action, observation}]: JSON in a string
}

// A LogEntry is one call of the session, with the points in time that the message of its error mentions.
type LogEntry struct {
	plan.LogEntry
	Moments []tool.Moment `json:"moments,omitempty"`
}

// A Grant is a grant of the confirmed plan with its usage, or a grant of the waiting plan.
type Grant struct {
	plan.Grant
	Words   string        `json:"words"`   // a description for people (plan.Grant.Sentence), in the run's time zone
	Moments []tool.Moment `json:"moments"` // points in time that Words mentions
	Used    int           `json:"used"`
	Revoked bool          `json:"revoked"`
}

// summary returns the run's summary. While the session waits, the summary names the cards that wait.
func summary(v *run.View, state *run.State, waiting []run.ApprovalView) string {
	if len(waiting) == 0 || state.End != nil {
		return v.Summary
	}
	return run.ProgressSummary(state, func(a *run.Action) string {
		for _, ap := range waiting {
			if ap.ActionID == a.ID {
				return ap.Preview.Title
			}
		}
		return run.ActionTitle(nil, a)
	})
}

// View returns the session in the form that its user sees, with its waiting approvals. The run must be a session.
func View(v *run.View, waiting []run.ApprovalView) (*Session, error) {
	state := v.PlanState()
	of, in, zone := state.Plan, state.Input, run.Locale{TimeZone: v.TimeZone}.Zone()
	s := &Session{OK: true, SessionID: v.RunID, RunID: v.RunID, ThreadID: v.ThreadID, Status: of.Status(),
		Prompt: in.Prompt, Attachments: v.Attachments, RepoURL: in.Session.Repo, Deadline: in.Session.Deadline,
		Revision: of.Revision,
		Tasks:    []Task{}, Questions: []string{}, Grants: []Grant{}, Changes: []plan.Change{},
		Approvals: append([]run.ApprovalView{}, waiting...), Artifacts: artifacts(state), Log: logOf(of),
		Summary: summary(v, state, waiting), Moments: v.Moments, ErrorCode: string(v.ErrorReason),
		ModelCalls: of.ModelCalls, Usage: v.Usage, LastEvent: v.LastEvent, CreatedAt: v.CreatedAt,
		UpdatedAt: v.UpdatedAt}
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
		task.Moments = run.MomentsOf(t.Error, v.UpdatedAt)
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

func logOf(of *plan.Session) []LogEntry {
	log := []LogEntry{}
	for _, e := range of.Log() {
		entry := LogEntry{LogEntry: e}
		if e.Error != nil {
			entry.Moments = run.MomentsOf(e.Error.Message, e.At)
		}
		log = append(log, entry)
	}
	return log
}

// propose adds the waiting plan to the view: its hash, grants and questions, and the tasks that it would add.
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
		GreenWithin: t.GreenWithin, RawReactHistory: "[]"}
}

// artifacts returns the URLs in the results of the session's completed effects, in their order and without duplicates.
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
		if json.Unmarshal(a.Result, &made) != nil { // a result without a URL
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
