package plan

import (
	"slices"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// The limits of a session.
const (
	MaxRevisions     = 20
	MaxReplans       = 3
	MaxPlanningCalls = 12 // calls of the model for one revision
	MaxSteps         = 20 // of one task
	MaxAdded         = 10 // tasks that changes add at once, to one confirmed plan

	MaxObserved = 4 << 20 // bytes of what its calls returned that are kept in full length; see KeepOf
)

// Status is the state of a session (FR-102).
type Status string

// The values of Status.
const (
	StatusPlanning  Status = "PLANNING"
	StatusAwaiting  Status = "AWAITING_CONFIRMATION" // exactly while a plan waits
	StatusExecuting Status = "EXECUTING"             // from the confirmation on
	StatusCompleted Status = "COMPLETED"
	StatusFailed    Status = "FAILED"
	StatusDeadline  Status = "DEADLINE_EXCEEDED"
)

// TaskStatus is the state of a task.
type TaskStatus string

// The values of TaskStatus.
const (
	TaskPending   TaskStatus = "PENDING"
	TaskExecuting TaskStatus = "EXECUTING"
	TaskCompleted TaskStatus = "COMPLETED"
	TaskFailed    TaskStatus = "FAILED"
	TaskObsolete  TaskStatus = "OBSOLETE"
)

// Phase says what a session needs next.
type Phase string

// The values of Phase.
const (
	Planning Phase = "planning" // the model reads, and proposes a plan
	Awaiting Phase = "awaiting" // a plan waits for its user
	Acting   Phase = "acting"   // the current task goes on, or the next one begins
	Done     Phase = "done"     // every task is done or obsolete: the run ends COMPLETED
	Broken   Phase = "broken"   // it cannot go on (Session.Why): the run ends FAILED
	Ended    Phase = "ended"
)

// A Proposal is a plan that waits for its user.
type Proposal struct {
	Proposed
	Plan Plan
}

// A Confirmation is a user's yes.
type Confirmation struct {
	Revision   int
	ActionID   string // of the call that proposed it
	ApprovalID string
	Hash       string
	Plan       Plan // as it was confirmed; Session.Plan has the changes since
	Edited     bool
	Strict     bool       // every change waits for another yes
	Place      tool.Place // see Proposed
}

// A TaskState is a task and what became of it.
type TaskState struct {
	Task
	Status  TaskStatus
	Result  string
	Error   string
	Steps   int  // answers of the model since it was last started
	Refused bool // a claim that it is done was refused, once
	Acts    []*Act

	begun int // how many of Acts there were when it was last started
}

// A Session is the fold of a session's events. Its fields are read and never written by others.
type Session struct {
	Proposal   *Proposal     // that waits; nil: none
	Confirmed  *Confirmation // the newest; nil: none yet
	Plan       *Plan         // that stands: the confirmed one with its changes; nil: none yet
	Tasks      []*TaskState  // all that were ever confirmed
	Current    *TaskState    // that is worked on; nil: none
	Revision   int           // number of the plan that was proposed last, from 1
	Replans    int           // plannings after a task that failed
	ModelCalls int           // answers of the model in all
	Observed   int           // bytes of what the calls returned
	Changes    []Changed     // that applied at once, oldest first
	Words      []string      // what the user said to plans that they had made anew, oldest first
	Why        string        // with the phase Broken: why it cannot go on
	Unreadable bool          // a plan that was stored cannot be read (ErrUnreadable)
	Cards      []Card        // on which plans were shown, oldest first

	before   *Plan  // what the plan that waits is compared with
	last     *Plan  // the plan that was proposed last
	lastHash string // of it
	cause    cause  // of the planning that goes on, or of the plan that waits
	again    bool   // the card that was closed last is replaced by another one of its revision
	broken   bool
	end      Status
	calls    int    // answers of the model since the planning began
	added    int    // tasks that changes have added to the confirmed plan
	nextID   int    // greater than the number of any task or grant so far
	log      []*Act // all calls, oldest first
	acts     map[string]*Act
	taskOf   map[string]*TaskState // by the id of an act
	uses     map[string]int        // of grants, by Grant.key
	keys     map[string]string     // of the grants that acts rest on, by the act's id
	revoked  map[string]bool       // ids of grants of the confirmed plan
}

// ErrUnreadable is the error of a session whose stored plan is none: somebody has written it who is not this program.
var ErrUnreadable = fault.New(fault.Validation, fault.CodeIntegrity,
	"The stored plan cannot be read, so this has ended, and nothing more is done.")

// cause says why a plan is made.
type cause string

const (
	first   cause = ""        // none was confirmed yet
	failed  cause = "failed"  // a task failed: without a new plan the session has failed
	changes cause = "changes" // the model wants changes that need a yes: without it the old plan goes on
)

func (t *TaskState) done() bool { return t.Status == TaskCompleted }

// NewSession returns a session in which nothing has happened yet.
func NewSession() *Session {
	return &Session{nextID: 1, acts: map[string]*Act{}, taskOf: map[string]*TaskState{}, uses: map[string]int{},
		keys: map[string]string{}, revoked: map[string]bool{}}
}

// Phase says what the session needs next.
func (s *Session) Phase() Phase {
	switch {
	case s.end != "":
		return Ended
	case s.broken:
		return Broken
	case s.Proposal != nil:
		return Awaiting
	case s.Confirmed == nil || s.cause == failed || s.cause == changes:
		return Planning
	case s.Current != nil || s.NextPending() != nil:
		return Acting
	}
	return Done
}

// Status returns the state of the session (FR-102).
func (s *Session) Status() Status {
	switch s.Phase() {
	case Ended:
		return s.end
	case Broken:
		return StatusFailed
	case Awaiting:
		return StatusAwaiting
	case Planning:
		return StatusPlanning
	}
	return StatusExecuting
}

// NextPending returns the first task that was not begun, or nil.
func (s *Session) NextPending() *TaskState {
	for _, t := range s.Tasks {
		if t.Status == TaskPending {
			return t
		}
	}
	return nil
}

// Task returns the task with the id, or nil.
func (s *Session) Task(id string) *TaskState {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Answered counts one answer of the model.
func (s *Session) Answered() {
	s.ModelCalls++
	if s.Current != nil {
		s.Current.Steps++
		return
	}
	s.calls++
}

// CallsLeft returns how many answers of the model are left for the revision that is planned, or for the current task.
// With the last one only its end is asked for.
func (s *Session) CallsLeft() int {
	if s.Current != nil {
		return max(0, MaxSteps-s.Current.Steps)
	}
	return max(0, MaxPlanningCalls-s.calls)
}

// leastKept is how many bytes are kept of each observation, however much a session has observed.
const leastKept = 4 << 10

// KeepOf returns how many bytes of the session's next observation are kept, of size bytes.
func KeepOf(s *Session, size int) int { return min(size, max(MaxObserved-s.Observed, leastKept)) }

// CodeDeadline is the code of the error of a run that is out of time.
const CodeDeadline fault.Code = "deadline"

// RevisionsLeft returns how many more plans may be proposed.
func (s *Session) RevisionsLeft() int { return max(0, MaxRevisions-s.Revision) }

// Bind returns b with what follows from the session: the plan whose ids stay, and the tasks that are done.
func (s *Session) Bind(b Bind) Bind {
	b.Before, b.NextID, b.Kept = nil, s.nextID, nil
	standing := s.last
	if s.Proposal != nil { // the card of a plan that waits is the same whenever it is made
		standing = s.before
	}
	if standing != nil {
		before := *standing
		before.Grants = slices.DeleteFunc(slices.Clone(before.Grants), func(g Grant) bool { return s.revoked[g.ID] })
		b.Before = &before
	}
	for _, t := range s.Tasks {
		if t.done() {
			b.Kept = append(b.Kept, t.Task)
		}
	}
	return b
}

// Newest returns the plan of the session that was proposed last, also once it waits no longer, or nil.
func Newest(s *Session) *Plan { return s.last }

// RawPlan returns the plan as it stands, or waits: JSON in a string (FR-203). It is empty while there is none.
func (s *Session) RawPlan() (string, error) {
	switch {
	case s.Proposal != nil:
		return string(s.Proposal.Proposed.Plan), nil
	case s.Plan == nil:
		return "", nil
	}
	b, err := s.Plan.Canonical()
	return string(b), err
}
