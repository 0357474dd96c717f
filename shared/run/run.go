package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/tool"
)

// The names of the built-in agents (package agents).
const (
	Assistant = "assistant" // of a run that names none
	Page      = "page"      // answers the messages of web pages
	Terminal  = "terminal"  // works on a terminal; the agent of a request that names a terminal and no agent

	TerminalChat = "terminal-chat" // talks about a terminal, and runs nothing

	Planner = "planner" // plans, and works the plan off that its user has confirmed (State.Plan)
)

// Kind says what a waiting call waits for.
type Kind string

// The kinds of a waiting call.
const (
	KindApproval Kind = "approval" // the user must approve the call
	KindReview   Kind = "review"   // the outcome is unknown: the user must say whether it was done
	KindCall     Kind = "call"     // the client carries the call out and must send its result
	KindPlan     Kind = "plan"     // the user must confirm the plan that the call proposes
)

// A Decision is a user's answer to a waiting call (contract §1).
type Decision string

// The decisions; the last two are for reviews.
const (
	Reject        Decision = "reject"
	ApproveOnce   Decision = "approve_once"
	ApproveAlways Decision = "approve_and_always_allow_recipient"
	ApproveEdited Decision = "approve_with_edits"

	// ApproveAlwaysCommand approves, and always allows exactly this call in this place (tool.Ruling.Always).
	ApproveAlwaysCommand Decision = "approve_and_always_allow_command"
	// Undo takes an approval back while its hold lasts (Action.Held).
	Undo Decision = "undo"

	// Refine asks for another plan, in the words of the comment.
	Refine Decision = "refine"

	ConfirmDone Decision = "confirm_done"
	StartNew    Decision = "start_new"
)

// A Lease says which process advances the run now. Its times come from the store's clock, never from a worker's.
type Lease struct {
	Owner  string    `json:"owner,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Lapsed int       `json:"lost,omitempty"` // consecutive owners that let it lapse without progress
}

// Held reports whether another process than owner holds the lease at now.
func (l Lease) Held(owner string, now time.Time) bool {
	return l.Owner != "" && l.Owner != owner && now.Before(l.Until)
}

// A Run is the stored document of a run.
type Run struct {
	ID        string              `json:"id"`
	UID       string              `json:"uid"`
	Agent     string              `json:"agent,omitempty"` // empty: Assistant
	ThreadID  string              `json:"threadId"`
	Terminal  string              `json:"terminal,omitempty"` // the user's terminal that it is on, if it is on one
	Origin    string              `json:"origin,omitempty"`
	Region    Region              `json:"region,omitzero"`    // the user's when the run began; it does not change
	BodyHash  string              `json:"bodyHash,omitempty"` // of the request that was sent with an Idempotency-Key
	CreatedAt time.Time           `json:"createdAt"`
	UpdatedAt time.Time           `json:"updatedAt"`
	Deadline  time.Time           `json:"deadline"` // the run ends by then in any case
	Lease     Lease               `json:"lease,omitzero"`
	Audit     audit.Head          `json:"audit"`
	Nonce     []byte              `json:"nonce,omitempty"`     // of the hashes in its chain (audit.InputHash)
	Approvals int                 `json:"approvals,omitempty"` // number of approvals requested so far
	Outputs   []string            `json:"outputs,omitempty"`   // ids of the actions whose output is kept
	Counted   RunUsage            `json:"settled,omitzero"`
	CleanUps  int                 `json:"cleanUps,omitempty"`  // that have failed, once it has ended
	Plan      *PlanHead           `json:"plan,omitempty"`      // of a run that plans
	Trace     string              `json:"trace,omitempty"`     // traceparent of the run's first span, if it was traced
	ToldTo    int64               `json:"toldTo,omitempty"`    // the number of the last event that others were told of
	TakenBack map[string]string   `json:"takenBack,omitempty"` // by actions: the newest run that is to take one back
	Log       document.Log[Event] `json:"log"`

	Quarantined int64 `json:"quarantined,omitempty"` // the last event that an older copy of the store had (Doubts)
}

// Via is an agent of another program that acts for a user, with a token of theirs (AgentToken). Its words are not its
// user's own.
type Via struct {
	TokenID string `json:"tokenId"`
	Name    string `json:"name"` // of the agent, as its user has named it
}

// Origin says where the agent's words come from.
func (v *Via) Origin() string { return "your agent “" + v.Name + "”" }

// AgentName returns the name of the run's agent.
func (r Run) AgentName() string { return cmp.Or(r.Agent, Assistant) }

// Scope returns what the places of its calls depend on.
func (r Run) Scope() tool.Scope { return tool.Scope{UID: r.UID, Terminal: r.Terminal} }

// ToolCall returns a call of the run as its tool sees it, without a handle.
func (r Run) ToolCall(actionID string, args json.RawMessage, in tool.Place) tool.Call {
	return tool.Call{UID: r.UID, Origin: r.Origin, Agent: r.AgentName(), ThreadID: r.ThreadID, RunID: r.ID,
		Terminal: r.Terminal, ActionID: actionID, Args: args, Place: in}
}

// RunUsage is the part of a run's use of the model that its user's document already counts (User.Spent).
type RunUsage struct {
	Calls  int `json:"calls,omitempty"`
	Tokens int `json:"tokens,omitempty"`
}

// An Approval is the stored document of a waiting call, keyed by its id: the pendingAction of seed 000 §7.
type Approval struct {
	ID          string          `json:"id"`
	Kind        Kind            `json:"kind"`
	UID         string          `json:"uid"`
	RunID       string          `json:"runId"`
	ThreadID    string          `json:"threadId"`
	Agent       string          `json:"agent,omitempty"` // that it counts for (User.CountOf); empty: Assistant
	ActionID    string          `json:"actionId"`
	Tool        string          `json:"tool"`
	ToolVersion string          `json:"toolVersion"`
	Args        json.RawMessage `json:"args"`
	ArgsHash    string          `json:"argsHash"`
	Place       tool.Place      `json:"place,omitzero"`  // where the call acts, if it acts in one
	Ruled       *Ruled          `json:"ruled,omitempty"` // of this call, where its tool tells (tool.Ruling)
	Preview     tool.Preview    `json:"preview"`
	TimeZone    string          `json:"timeZone,omitempty"` // of the preview's times; empty: not known
	Reason      string          `json:"reason"`
	Decisions   []Decision      `json:"decisions"` // the possible ones; the first is the plain yes
	RequestedAt time.Time       `json:"requestedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	Status      ApprovalStatus  `json:"status"`
	Decision    Decision        `json:"decision,omitempty"`
	DecidedAt   time.Time       `json:"decidedAt,omitzero"`
	EditHash    string          `json:"editHash,omitempty"` // of the user's edits as they were sent
	SeenHash    string          `json:"seenHash,omitempty"` // of what the user edited
	Rule        string          `json:"rule,omitempty"`     // the policy rule that requires the approval
	Findings    []Finding       `json:"findings,omitempty"` // what in it comes from strangers; at most MaxFindings
	Refusals    int             `json:"refusals,omitempty"` // refused decisions about it, which are in the audit

	InsteadOf []EarlierCard `json:"insteadOf,omitempty"` // which waited when this was asked for; at most MaxEarlier
}

// An EarlierCard is a card of the same conversation for whose call a newer card may be meant instead: it is of an
// earlier request and of the same tool, and reaches the same, or shows a value that the newer card shows too.
type EarlierCard struct {
	ApprovalID  string    `json:"approvalId"`
	Title       string    `json:"title"`
	RequestedAt time.Time `json:"requestedAt"`
}

// A Finding says what in a call comes from strangers, or is not in its user's own words (shared/taint).
type Finding struct {
	Reason string `json:"reason"`           // target, mention, copied, leaking, too_much, composed or agent
	Origin string `json:"origin,omitempty"` // where it was read; empty: nothing that was read has it
	Text   string `json:"text,omitempty"`   // at most 500 bytes of it
}

// MaxFindings is how many findings a card has.
const MaxFindings = 10

// MaxEarlier is how many earlier cards a card names.
const MaxEarlier = 4

// ApprovalStatus is the state of an Approval.
type ApprovalStatus string

// The states of an approval; only an open one may be decided.
const (
	ApprovalOpen      ApprovalStatus = "open"
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalRejected  ApprovalStatus = "rejected"
	ApprovalExpired   ApprovalStatus = "expired"
	ApprovalCancelled ApprovalStatus = "cancelled"
	ApprovalReplaced  ApprovalStatus = "replaced" // its card was out of date, so a new approval was requested
)

// An Action is the state of one call, folded from the run's events.
type Action struct {
	ID string
	ProposedCall
	Status     ActionStatus
	Execution  Execution
	ApprovalID string
	Kind       Kind
	ExpiresAt  time.Time
	Decision   Decision
	DecidedBy  string
	Comment    string
	HeldUntil  time.Time // with a yes: the call is not begun before; zero: it is not held
	ReplacedBy string    // with a rejection: the approval that was given instead
	Started    Started
	Result     json.RawMessage
	Truncated  bool // Result is what the call returned, cut
	Error      *ErrorInfo
	PlannedAt  time.Time
	UpdatedAt  time.Time

	seq  int64 // of the event that proposed it
	last int64 // of its newest event
}

// Runnable reports whether the action may be carried out, as far as the policy and its user go: either allows it, and
// it has not been started.
func (a *Action) Runnable() bool {
	return a.Status == ActionPlanned && !a.RequiresApproval || a.Status == ActionAwaiting && a.Decision != ""
}

// Doubts reports whether the action may have been carried out without the run's record of it: the store was put back
// from an older copy, and what permits the action was recorded by then (Run.Quarantined is the number of the last such
// event) or comes from no decision of the user. An action that was begun is not doubted: its tool tells what became of
// it.
func (r Run) Doubts(a *Action) bool {
	return r.Quarantined > 0 && a.Status != ActionExecuting && (a.Decision == "" || a.last <= r.Quarantined)
}

// Held reports whether the approved call waits for the end of its hold, until which its user may take the yes back.
func (a *Action) Held(now time.Time) bool { return a.Runnable() && now.Before(a.HeldUntil) }

// HeldUntil returns when the first hold of the newest turn's calls ends, or zero where none is held now.
func HeldUntil(s *State, now time.Time) (first time.Time) {
	if s.End != nil {
		return first
	}
	for _, a := range s.Current() {
		if a.Held(now) && (first.IsZero() || a.HeldUntil.Before(first)) {
			first = a.HeldUntil
		}
	}
	return first
}

// Unasked reports whether the action needs an approval that was not requested yet, because its turn has not come.
func (a *Action) Unasked() bool { return a.Status == ActionPlanned && a.RequiresApproval }

// Terminal reports whether the call has its answer.
func (a *Action) Terminal() bool {
	switch a.Status {
	case ActionCompleted, ActionRejected:
		return true
	case ActionFailed:
		return !a.Waiting()
	}
	return false
}

// Waiting reports whether the call waits: for an approval, for the review of an unknown outcome, or for the client's
// answer.
func (a *Action) Waiting() bool {
	if a.Decision != "" {
		return false
	}
	return a.Status == ActionAwaiting || a.Status == ActionFailed && a.Execution == UnknownState && a.Kind == KindReview
}

// WaitsForClient reports whether the call waits for the client to carry it out.
func (a *Action) WaitsForClient() bool { return a.Waiting() && a.Kind == KindCall }

// A State is the result of folding a run's events.
type State struct {
	Status     Status
	Input      Input
	Turns      []Turn
	Actions    []*Action
	Cancelled  bool
	End        *End
	Cleaned    *Cleaned
	Usage      model.Usage
	ModelCalls int   // calls to the model that were answered in this run
	Tokens     int   // used by those calls; estimated where the service did not count them
	Cost       int64 // of those calls, in millionths of the currency that the run's budget is in

	Compressions []Compression // of what the model is told

	Plan *plan.Session // of a run that plans; nil: it does not

	byID    map[string]*Action // Actions
	segment int                // turns before the one with which the segment of the conversation began (Segment)
	began   time.Time          // when that was
}

// RecordOf tells what an ended run has done and what it has not; empty before that, and of runs of earlier releases.
func RecordOf(s *State) string {
	if s.End == nil {
		return ""
	}
	return s.End.Record
}

// Action returns the action with the id, or nil.
func (s *State) Action(id string) *Action { return s.byID[id] }

// Current returns the actions of the newest turn, one for each of the model's calls and in the model's order: an action
// that was started afresh takes the place of the one it replaces.
func (s *State) Current() []*Action {
	older := len(s.Actions) // those of earlier turns stand before
	for older > 0 && s.Actions[older-1].Turn == len(s.Turns) {
		older--
	}
	var out []*Action
	for _, a := range s.Actions[older:] {
		if a.Index < len(out) {
			out[a.Index] = a
		} else {
			out = append(out, a)
		}
	}
	return out
}

// Open returns the actions that wait ([Action.Waiting]).
func (s *State) Open() []*Action {
	var out []*Action
	for _, a := range s.Actions {
		if a.Waiting() {
			out = append(out, a)
		}
	}
	return out
}

// Left returns the tools whose calls may have left something, each once, in the order of their calls. What was never
// begun has left nothing; what has failed may have.
func Left(s *State) (tools []string) {
	for _, a := range s.Actions {
		if a.Leaves && a.Started.Owner != "" && !slices.Contains(tools, a.Tool) {
			tools = append(tools, a.Tool)
		}
	}
	return tools
}

// Unclean reports whether the run has ended and what its calls have left is still to be removed.
func Unclean(s *State) bool { return s.End != nil && s.Cleaned == nil && len(Left(s)) > 0 }

// Derived returns the status that follows from the rest of the state: awaiting while an action waits, executing while a
// call is to be carried out, planning while the model is to be called.
func (s *State) Derived() Status {
	if s.End != nil {
		return s.End.Status
	}
	if len(s.Open()) > 0 {
		return Awaiting
	}
	for _, a := range s.Current() {
		if !a.Terminal() {
			return Executing
		}
	}
	return Planning
}

func illegal(e Event, why string) error {
	return fmt.Errorf("run: event %d (%s) cannot follow: %s", e.Seq, e.Type, why)
}
