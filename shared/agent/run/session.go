package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Session is the input of a run with a plan, in addition to the prompt. Its deadline is the run's.
type Session struct {
	Repo     plan.Repo `json:"repo"`
	Deadline time.Time `json:"deadline"`
	State    string    `json:"state,omitempty"`    // the repository's state, as text; empty: none of it could be read
	Private  bool      `json:"private,omitempty"`  // the repository is private
	Excerpts []Excerpt `json:"excerpts,omitempty"` // the files that State shows only the beginning of

	// ContinueFrom is the session whose unfinished tasks form the first revision. It is empty in a new session.
	ContinueFrom string     `json:"continueFrom,omitempty"`
	Unfinished   *plan.Plan `json:"unfinished,omitempty"`
}

// An Excerpt states how much of a file is in Session.State.
type Excerpt struct {
	Path  string `json:"path"`
	Shown int    `json:"shown"` // bytes, from the beginning
	Size  int    `json:"size"`  // of the whole file
}

// OpenHeading begins the list of open issues in Session.State. Each line of the list is one issue or pull request,
// whose title anyone may have written. An empty line ends the list. All other text in State comes from the repository's
// owners.
const OpenHeading = "\nOpen issues:\n"

// Parts splits the State by author: own comes from the repository's owners, open from anyone who opened an issue or a
// pull request. A title contains no line break, so no title can pass for text outside the list.
func (s Session) Parts() (own, open string) {
	before, rest, listed := strings.Cut(s.State, OpenHeading)
	if !listed {
		return s.State, ""
	}
	open, after, _ := strings.Cut(rest, "\n\n")
	return before + "\n\n" + after, open
}

// PlanHead holds the fields of a session that lists show, so that its events need not be read.
type PlanHead struct {
	Status   plan.Status `json:"status"`
	Revision int         `json:"revision"`
	Prompt   string      `json:"prompt"` // the beginning of the prompt
	Repo     plan.Repo   `json:"repo"`
}

// maxHeadPrompt is the maximum length of a prompt in a list, in bytes.
const maxHeadPrompt = 300

// PlanHead returns the session as lists show it, or nil for a run without a plan.
func (s *State) PlanHead() *PlanHead {
	if s.Plan == nil {
		return nil
	}
	return &PlanHead{Status: s.Plan.Status(), Revision: s.Plan.Revision, Repo: s.Input.Session.Repo,
		Prompt: clip.Text(s.Input.Prompt, maxHeadPrompt)}
}

// actView returns the view of the event's call, or nil if the run has no plan or the event says nothing about a call.
func (s *State) actView(a *Action, e Event) *ActView {
	switch {
	case s.Plan == nil:
		return nil
	case e.Proposed != nil:
		return &ActView{Reason: a.Reasoning, Args: a.Args, Grant: a.Grant}
	case e.Finished != nil:
		return &ActView{Observation: a.Result, Untrusted: a.Untrusted}
	}
	return nil
}

// MaxSessions is the maximum number of sessions in a user's list, which holds the newest.
const MaxSessions = 50

// AddSession puts the session first in the user's list.
func (u *User) AddSession(runID string) {
	u.Sessions = append([]string{runID}, u.Sessions[:min(len(u.Sessions), MaxSessions-1)]...)
}

// Bind returns the constraints on a plan of the session, with the tools of its agent.
func (s *State) Bind(tools tool.Set, locale Locale, now time.Time) plan.Bind {
	in := s.Input.Session
	return s.Plan.Bind(plan.Bind{Repo: in.Repo, Deadline: in.Deadline, Now: now, Tools: tools, Zone: locale.Zone()})
}

// Segment returns the number of turns before the current segment of the conversation, and when the segment began. The
// model sees only the segment's turns. Each task is a segment, and so is the planning after it.
func (s *State) Segment() (turns int, began time.Time) { return s.segment, s.began }

// OwnWork reports whether the server made the turn without asking a model.
func (t Turn) OwnWork() bool { return t.Content == nil && t.Correction == "" }

func (s *State) planned(e Event) error {
	if s.Plan == nil || e.Planned == nil || e.Planned.Type() != string(e.Type) {
		return illegal(e, "not an event of this run's plan")
	}
	if err := s.Plan.Apply(*e.Planned); err != nil {
		return illegal(e, err.Error())
	}
	if e.Type == TaskStarted || e.Type == TaskFinished {
		s.segment, s.began = len(s.Turns), e.At
	}
	return nil
}

// recordAct passes the call's current state to the session.
func (s *State) recordAct(a *Action) {
	if s.Plan == nil || a.Tool == plan.ProposeTool || a.Tool == plan.ReflectTool {
		return
	}
	act := plan.Act{ID: a.ID, Seq: a.seq, At: a.PlannedAt, Reason: a.Reasoning, Tool: a.Tool, Args: a.Args,
		Effect: a.SideEffect, Grant: a.Started.Grant, ApprovalID: a.ApprovalID, Execution: plan.Execution(a.Execution),
		Over: a.Terminal(), Observation: a.Result}
	if a.Untrusted {
		act.Source = a.Tool
	}
	switch {
	case a.Status == ActionRejected:
		act.Error = &plan.Trouble{Class: string(fault.Policy), Code: "rejected", Message: "The user rejected this."}
	case a.Error != nil:
		act.Error = &plan.Trouble{Class: string(a.Error.Class), Code: string(a.Error.Code), Message: a.Error.Message}
	}
	s.Plan.Record(act)
}

// KeepOf returns how many bytes of the next call's result are kept if the result has size bytes (plan.KeepOf).
func KeepOf(s *State, size int) int {
	if s.Plan == nil {
		return size
	}
	return plan.KeepOf(s.Plan, size)
}

// inWords maps the states of tasks to their names for the user.
var inWords = map[plan.TaskStatus]string{plan.TaskPending: "Not begun", plan.TaskExecuting: "Not finished",
	plan.TaskCompleted: "Done", plan.TaskFailed: "Failed", plan.TaskObsolete: "Dropped"}

// TaskSummary returns the outcome of each task, from the record.
func TaskSummary(s *State) string {
	var lines []string
	for _, t := range s.Plan.Tasks {
		line := fmt.Sprintf("%s: %s", inWords[t.Status], t.Title)
		for _, more := range []string{t.Result, t.Error} {
			if more != "" {
				line += ". " + more
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
