package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/tool"
)

// Kind of a waiting call.
type Kind string

// The kinds.
const (
	KindApproval Kind = "approval" // may it be done?
	KindReview   Kind = "review"   // was it done? nobody here can tell
	KindCall     Kind = "call"     // what does it answer? somebody else carries it out
)

// Decision is what a user answers (contract §1).
type Decision string

// The decisions; the last two are for reviews.
const (
	Reject        Decision = "reject"
	ApproveOnce   Decision = "approve_once"
	ApproveAlways Decision = "approve_and_always_allow_recipient"
	ApproveEdited Decision = "approve_with_edits"
	ConfirmDone   Decision = "confirm_done"
	StartNew      Decision = "start_new"
)

// Lease says who moves the run now. Its times are the store's, never a worker's.
type Lease struct {
	Owner string    `json:"owner,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Lost  int       `json:"lost,omitempty"` // owners in a row who let it lapse without having come any further
}

// Held reports whether somebody else than owner moves the run at now.
func (l Lease) Held(owner string, now time.Time) bool {
	return l.Owner != "" && l.Owner != owner && now.Before(l.Until)
}

// Run is a run as the store keeps it.
type Run struct {
	ID        string     `json:"id"`
	UID       string     `json:"uid"`
	ThreadID  string     `json:"threadId"`
	Origin    string     `json:"origin,omitempty"`
	Region    Region     `json:"region,omitzero"`    // of the user when the run began: it keeps it
	BodyHash  string     `json:"bodyHash,omitempty"` // of the request that an Idempotency-Key stands for
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Deadline  time.Time  `json:"deadline"` // it ends by then, whatever happens
	Lease     Lease      `json:"lease,omitzero"`
	Audit     audit.Head `json:"audit"`
	Nonce     []byte     `json:"nonce,omitempty"`     // of the hashes in its chain (audit.InputHash)
	Approvals int        `json:"approvals,omitempty"` // as many have been asked for so far
	Settled   Settled    `json:"settled,omitzero"`
	Log       Log[Event] `json:"log"`
}

// FieldAside is a field of a run's document. It is true where nobody could move the run, so that nobody is offered it any more.
const FieldAside = "aside"

// Settled is what of a run's use of the model is counted in its user's document (User.Spent).
type Settled struct {
	Calls  int `json:"calls,omitempty"`
	Tokens int `json:"tokens,omitempty"`
}

// Approval is a waiting call, keyed by its id: the pendingAction of seed 000 §7.
type Approval struct {
	ID          string          `json:"id"`
	Kind        Kind            `json:"kind"`
	UID         string          `json:"uid"`
	RunID       string          `json:"runId"`
	ThreadID    string          `json:"threadId"`
	ActionID    string          `json:"actionId"`
	Tool        string          `json:"tool"`
	ToolVersion string          `json:"toolVersion"`
	Args        json.RawMessage `json:"args"`
	ArgsHash    string          `json:"argsHash"`
	Place       tool.Place      `json:"place,omitzero"` // where the call acts, if it acts in one
	Preview     tool.Preview    `json:"preview"`
	TimeZone    string          `json:"timeZone,omitempty"` // by whose clocks the preview is made; empty: the user's was not known
	Reason      string          `json:"reason"`
	Decisions   []Decision      `json:"decisions"` // those that fit; the first is the plain yes
	RequestedAt time.Time       `json:"requestedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	Status      ApprovalStatus  `json:"status"`
	Decision    Decision        `json:"decision,omitempty"`
	DecidedAt   time.Time       `json:"decidedAt,omitzero"`
	EditHash    string          `json:"editHash,omitempty"` // of the user's edits as they were sent
	Rule        string          `json:"rule,omitempty"`     // of the policy, that asks
	Refusals    int             `json:"refusals,omitempty"` // decisions about it that were refused, and are in the audit
}

// ApprovalStatus of an approval.
type ApprovalStatus string

// The states; only an open one may be decided.
const (
	ApprovalOpen      ApprovalStatus = "open"
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalRejected  ApprovalStatus = "rejected"
	ApprovalExpired   ApprovalStatus = "expired"
	ApprovalCancelled ApprovalStatus = "cancelled"
	ApprovalReplaced  ApprovalStatus = "replaced" // it was no longer what would be shown, and was asked for afresh
)

// Action is a call of the model as the run's events tell it.
type Action struct {
	ID string
	Plan
	Status     ActionStatus
	Execution  Execution
	ApprovalID string
	Kind       Kind
	ExpiresAt  time.Time
	Decision   Decision
	DecidedBy  string
	Comment    string
	Started    Started
	Result     json.RawMessage
	Error      *Problem
	PlannedAt  time.Time
	UpdatedAt  time.Time
}

// Runnable reports whether the action may be carried out now: allowed by the policy or by its user, and not yet begun.
func (a *Action) Runnable() bool {
	return a.Status == ActionPlanned || a.Status == ActionAwaiting && a.Decision != ""
}

// Over reports whether the call has its answer.
func (a *Action) Over() bool {
	switch a.Status {
	case ActionCompleted, ActionRejected:
		return true
	case ActionFailed:
		return !a.Waiting()
	}
	return false
}

// Waiting reports whether somebody must decide: an approval, or the review of an unknown outcome.
func (a *Action) Waiting() bool {
	if a.Decision != "" {
		return false
	}
	return a.Status == ActionAwaiting || a.Status == ActionFailed && a.Execution == UnknownState && a.Kind == KindReview
}

// State is what a run's events add up to.
type State struct {
	Status    RunStatus
	Question  Question
	Turns     []Turn
	Actions   []*Action
	Cancelled bool
	End       *End
	Usage     model.Usage
	Asked     int // calls of the model that were answered in this run
	Tokens    int // of those, estimated where the service did not count them
}

// Fold reads events, oldest first.
func Fold(events []Event) (*State, error) {
	s := &State{}
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Action gives the action of the id, or nil.
func (s *State) Action(id string) *Action {
	for _, a := range s.Actions {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// Current gives the actions of the newest turn that stand for the model's calls, in the model's order: an action that
// was started afresh stands in the place of the one it replaces.
func (s *State) Current() []*Action {
	var out []*Action
	for _, a := range s.Actions {
		switch {
		case a.Turn != len(s.Turns):
		case a.Index < len(out):
			out[a.Index] = a
		default:
			out = append(out, a)
		}
	}
	return out
}

// Open gives the actions that wait for somebody.
func (s *State) Open() []*Action {
	var out []*Action
	for _, a := range s.Actions {
		if a.Waiting() {
			out = append(out, a)
		}
	}
	return out
}

// Derived is the status that follows from the rest of the state: awaiting exactly while something waits, executing
// while a call is to be carried out, planning while the model is to be asked.
func (s *State) Derived() RunStatus {
	if s.End != nil {
		return s.End.Status
	}
	if len(s.Open()) > 0 {
		return Awaiting
	}
	for _, a := range s.Current() {
		if !a.Over() {
			return Executing
		}
	}
	return Planning
}

func illegal(e Event, why string) error {
	return fmt.Errorf("agent: event %d (%s) cannot follow: %s", e.Seq, e.Type, why)
}
