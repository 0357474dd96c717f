package plan

import (
	"slices"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Limits of a session.
const (
	MaxRevisions     = 20
	MaxReplans       = 3
	MaxPlanningCalls = 12 // model calls for one revision
	MaxSteps         = 20 // of one task
	MaxAdded         = 10 // tasks that changes can add to one confirmed plan without a new confirmation

	MaxObserved = 4 << 20 // bytes of observations that are kept in full; see KeepOf
)

// Status is the state of a session (FR-102).
type Status string

// The values of Status.
const (
	StatusPlanning  Status = "PLANNING"
	StatusAwaiting  Status = "AWAITING_CONFIRMATION" // while a plan waits, and only then
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

// Phase is the kind of input that a session needs next.
type Phase string

// The values of Phase.
const (
	Planning Phase = "planning" // the model reads and proposes a plan
	Awaiting Phase = "awaiting" // a plan waits for its user
	Acting   Phase = "acting"   // the current task continues, or the next one starts
	Done     Phase = "done"     // every task is completed or obsolete; the run ends COMPLETED
	Broken   Phase = "broken"   // it cannot continue (Session.Why); the run ends FAILED
	Ended    Phase = "ended"
)

// A Proposal is a plan that waits for its user.
type Proposal struct {
	Proposed
	Plan Plan
}

// A Confirmation is a user's confirmation of a plan.
type Confirmation struct {
	Revision   int
	ActionID   string // ID of the call that proposed the plan
	ApprovalID string
	Hash       string
	Plan       Plan // as confirmed; Session.Plan includes later changes
	Edited     bool
	Strict     bool       // every change needs a new confirmation
	Place      tool.Place // see Proposed
}

// A TaskState is a task with its progress.
type TaskState struct {
	Task
	Status  TaskStatus
	Result  string
	Error   string
	Steps   int  // model answers since the task was last started
	Refused bool // one claim that the task is done was refused
	Acts    []*Act

	begun int // length of Acts when the task was last started
}

// A Session is the fold of a session's events. Other packages read its fields and never write them.
type Session struct {
	Proposal   *Proposal     // the waiting plan; nil: none
	Confirmed  *Confirmation // the newest confirmation; nil: none yet
	Plan       *Plan         // the current plan: the confirmed one with its changes; nil: none yet
	Tasks      []*TaskState  // all tasks that were ever confirmed
	Current    *TaskState    // the task in progress; nil: none
	Revision   int           // number of the newest proposed plan, from 1
	Replans    int           // number of plannings after a failed task
	ModelCalls int           // model answers in total
	Observed   int           // bytes that the calls returned
	Changes    []Changed     // changes that applied at once, oldest first
	Words      []string      // the user's comments with requests for another plan, oldest first
	Why        string        // in the phase Broken: the reason
	Unreadable bool          // a stored plan is unreadable (ErrUnreadable)
	Cards      []Card        // cards that showed plans, oldest first

	before   *Plan  // the plan that the waiting one is compared with
	last     *Plan  // the newest proposed plan
	lastHash string // hash of last
	cause    cause  // of the current planning, or of the waiting plan
	again    bool   // the last closed card will be replaced by another one of the same revision
	broken   bool
	end      Status
	calls    int    // model answers since the planning began
	added    int    // number of tasks that changes added to the confirmed plan
	nextID   int    // greater than the number in any ID of a task or grant so far
	log      []*Act // all calls, oldest first
	acts     map[string]*Act
	taskOf   map[string]*TaskState // by the ID of an act
	uses     map[string]int        // use counts of grants, by Grant.key
	keys     map[string]string     // Grant.key of the grant that allowed an act, by the act's ID
	revoked  map[string]bool       // by ID, for grants of the confirmed plan
}

// ErrUnreadable is the error of a session whose stored plan is not a plan. Another program must have written it.
var ErrUnreadable = fault.New(fault.Validation, fault.CodeIntegrity,
	"The stored plan is unreadable, so this was stopped.")

// cause is the reason for a planning.
type cause string

const (
	first   cause = ""        // no plan was confirmed yet
	failed  cause = "failed"  // a task failed; without a new plan the session fails
	changes cause = "changes" // the model wants changes that need a confirmation; without one the old plan continues
)

func (t *TaskState) done() bool { return t.Status == TaskCompleted }

// NewSession returns a session without events.
func NewSession() *Session {
	return &Session{nextID: 1, acts: map[string]*Act{}, taskOf: map[string]*TaskState{}, uses: map[string]int{},
		keys: map[string]string{}, revoked: map[string]bool{}}
}

// Phase returns the kind of input that the session needs next.
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

// CheckCall returns an error if the session's own tool with this name may not be called in this phase, or nil.
func (s *Session) CheckCall(name string) error {
	switch {
	case name == ProposeTool && s.Phase() != Planning:
		return fault.New(fault.Policy, codeNotNow, "No plan is proposed while a task is under way; reflect on it.")
	case name == ReflectTool && s.Current == nil:
		return fault.New(fault.Policy, codeNotNow, "There is no task to reflect on; propose a plan.")
	}
	return nil
}

// codeNotNow is the error code of a call in the wrong phase.
const codeNotNow fault.Code = "not_now"

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

// NextPending returns the first task that has not started, or nil.
func (s *Session) NextPending() *TaskState {
	for _, t := range s.Tasks {
		if t.Status == TaskPending {
			return t
		}
	}
	return nil
}

// Task returns the task with the ID, or nil.
func (s *Session) Task(id string) *TaskState {
	for _, t := range s.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Answered counts one model answer.
func (s *Session) Answered() {
	s.ModelCalls++
	if s.Current != nil {
		s.Current.Steps++
		return
	}
	s.calls++
}

// CallsLeft returns how many model answers are left for the revision in planning, or for the current task. With the
// last one, the model can only propose the plan or reflect.
func (s *Session) CallsLeft() int {
	if s.Current != nil {
		return max(0, s.maxCalls()-s.Current.Steps)
	}
	return max(0, s.maxCalls()-s.calls)
}

// maxCalls is the largest number of model answers for a revision in planning, or for a task.
func (s *Session) maxCalls() int {
	if s.Current != nil {
		return MaxSteps
	}
	return MaxPlanningCalls
}

// leastKept is the minimum number of bytes that are kept of each observation, however much a session has observed.
const leastKept = 4 << 10

// KeepOf returns how many bytes of the session's next observation are kept if it has size bytes.
func KeepOf(s *Session, size int) int { return min(size, max(MaxObserved-s.Observed, leastKept)) }

// CodeDeadline is the error code of a run past its deadline.
const CodeDeadline fault.Code = "deadline"

// RevisionsLeft returns how many more plans can be proposed.
func (s *Session) RevisionsLeft() int { return max(0, MaxRevisions-s.Revision) }

// Bind returns b with the facts that follow from the session: the plan whose IDs are kept, and the completed tasks.
func (s *Session) Bind(b Bind) Bind {
	b.Before, b.NextID, b.Kept = nil, s.nextID, nil
	standing := s.last
	if s.Proposal != nil { // the card of a waiting plan must not depend on when it is made
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

// Newest returns the plan that was proposed last, whether it still waits or not, or nil.
func Newest(s *Session) *Plan { return s.last }

// RawPlan returns the waiting plan, or else the current one, as JSON in a string (FR-203). It returns "" if there is
// none.
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
