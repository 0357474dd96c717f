package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// The names of the built-in agents (shared/app/agents).
const (
	Assistant = "assistant" // the agent of a run that names none
	Page      = "page"      // answers the messages of web pages
	Terminal  = "terminal"  // works on a terminal; the default if a request names a terminal and no agent

	TerminalChat = "terminal-chat" // talks about a terminal, and runs no commands

	Planner = "planner" // makes a plan and runs the confirmed one (State.Plan)
)

// Kind is the kind of answer that a waiting call needs.
type Kind string

// The kinds of a waiting call.
const (
	KindApproval Kind = "approval" // the user must approve the call
	KindReview   Kind = "review"   // the outcome is unknown: the user must say whether it was done
	KindCall     Kind = "call"     // the client must run the call and send the result
	KindPlan     Kind = "plan"     // the user must confirm the plan that the call proposes
)

// A Decision is a user's answer to a waiting call (contract §1).
type Decision string

// The decisions. ConfirmDone and StartNew are for reviews only.
const (
	Reject        Decision = "reject"
	ApproveOnce   Decision = "approve_once"
	ApproveAlways Decision = "approve_and_always_allow_recipient"
	ApproveEdited Decision = "approve_with_edits"

	// ApproveAlwaysCommand approves the call and always allows this exact call on this account or host
	// (tool.CallPolicy.Always).
	ApproveAlwaysCommand Decision = "approve_and_always_allow_command"
	// Undo revokes an approval during its undo window (Action.Held).
	Undo Decision = "undo"

	// TakeBack rejects a waiting call because its user asked for that in the conversation ([toolbox.TakeBackTool]). No
	// client sends it.
	TakeBack Decision = "take_back"

	// Refine asks for another plan; the comment says what to change.
	Refine Decision = "refine"

	ConfirmDone Decision = "confirm_done"
	StartNew    Decision = "start_new"
)

// A Lease names the process that currently advances the run. Its times come from the store's clock, never from a
// worker's.
type Lease struct {
	Owner  string    `json:"owner,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Lapsed int       `json:"lost,omitempty"` // number of owners in a row that let the lease lapse without progress
}

// Held reports whether a process other than owner holds the lease at now.
func (l Lease) Held(owner string, now time.Time) bool {
	return l.Owner != "" && l.Owner != owner && now.Before(l.Until)
}

// A Run is the stored document of a run.
type Run struct {
	ID       string `json:"id"`
	UID      string `json:"uid"`
	Agent    string `json:"agent,omitempty"` // empty: Assistant
	ThreadID string `json:"threadId"`
	Terminal string `json:"terminal,omitempty"` // the user's terminal that the run works on, if any
	Origin   string `json:"origin,omitempty"`
	// Locale is the user's time zone and locale when the run began. It does not change.
	Locale    Locale     `json:"region,omitzero"`
	BodyHash  string     `json:"bodyHash,omitempty"` // hash of the request, if it had an Idempotency-Key
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Deadline  time.Time  `json:"deadline"` // the run ends by then, whatever its state
	Lease     Lease      `json:"lease,omitzero"`
	Audit     audit.Head `json:"audit"`
	Nonce     []byte     `json:"nonce,omitempty"`     // for the hashes in the run's audit chain (audit.InputHash)
	Approvals int        `json:"approvals,omitempty"` // number of approvals requested so far
	Outputs   []string   `json:"outputs,omitempty"`   // IDs of the actions whose output is kept
	FileParts int        `json:"fileParts,omitempty"` // number of documents with the files of the prompt
	Counted   RunUsage   `json:"settled,omitzero"`
	CleanUps  int        `json:"cleanUps,omitempty"` // failed attempts to remove what the run's calls created
	Plan      *PlanHead  `json:"plan,omitempty"`     // nil for a run without a plan
	Trace     string     `json:"trace,omitempty"`    // traceparent of the run's first span, if it was traced
	// Delivered is the delivered cursor: the number of the last event that was sent as a notification.
	Delivered int64 `json:"toldTo,omitempty"`
	// TakenBack maps each action's ID to the newest run that was started to undo the action.
	TakenBack map[string]string `json:"takenBack,omitempty"`
	// Reopens are the cards that the user must get again, because an undo in this run revoked the approval that had
	// rejected them. The run stays due until each was requested again.
	Reopens []Replaced          `json:"reopens,omitempty"`
	Log     document.Log[Event] `json:"log"`

	// Quarantined is the number of the last event before the store was restored from an older copy, or before a forged
	// decision was found (Doubts).
	Quarantined int64 `json:"quarantined,omitempty"`
	// LookedUp is the number of the event that proposed the last call that was looked up after the restore (ToLookUp).
	LookedUp int64 `json:"lookedUp,omitempty"`
	// Forged means that Quarantined was set because of a forged decision.
	Forged bool `json:"forged,omitempty"`
}

// Replaced names a card of another run and the approval that rejected it.
type Replaced struct {
	ApprovalID string `json:"approvalId"`
	By         string `json:"by"` // the ID of the approval, which is of this run
}

// Delegate is another program's agent that acts for a user with one of the user's AgentTokens. Text from it does not
// count as the user's own words.
type Delegate struct {
	TokenID string `json:"tokenId"`
	Name    string `json:"name"` // the user's name for the agent
}

// Origin describes the agent as the source of a text.
func (v *Delegate) Origin() string { return "your agent “" + v.Name + "”" }

// AgentName returns the name of the run's agent.
func (r Run) AgentName() string { return cmp.Or(r.Agent, Assistant) }

// Scope returns the values that determine which account or host the run's calls act on.
func (r Run) Scope() tool.Scope { return tool.Scope{UID: r.UID, Terminal: r.Terminal} }

// ToolCall returns a call of the run in the form that tools receive. The call has no handle.
func (r Run) ToolCall(actionID string, args json.RawMessage, in tool.Place) tool.Call {
	return tool.Call{UID: r.UID, Origin: r.Origin, Agent: r.AgentName(), ThreadID: r.ThreadID, RunID: r.ID,
		Terminal: r.Terminal, ActionID: actionID, Args: args, Place: in}
}

// RunUsage is the part of a run's model usage that its user's document already counts (User.Usage).
type RunUsage struct {
	Calls  int `json:"calls,omitempty"`
	Tokens int `json:"tokens,omitempty"`
}

// An Approval is the stored document of a waiting call, keyed by its ID: the pendingAction of seed 000 §7.
type Approval struct {
	ID       string `json:"id"`
	Kind     Kind   `json:"kind"`
	UID      string `json:"uid"`
	RunID    string `json:"runId"`
	ThreadID string `json:"threadId"`
	// Agent is the agent that the approval counts for (User.CountOf); empty: Assistant.
	Agent       string          `json:"agent,omitempty"`
	ActionID    string          `json:"actionId"`
	Tool        string          `json:"tool"`
	ToolVersion string          `json:"toolVersion"`
	Args        json.RawMessage `json:"args"`
	ArgsHash    string          `json:"argsHash"`
	Place       tool.Place      `json:"place,omitzero"`  // the account or host that the call acts on, if any
	Ruled       *AppliedPolicy  `json:"ruled,omitempty"` // the tool's policy for this call, if any (tool.CallPolicy)
	Preview     tool.Preview    `json:"preview"`
	TimeZone    string          `json:"timeZone,omitempty"` // time zone of the preview's times; empty: unknown
	Reason      string          `json:"reason"`
	Decisions   []Decision      `json:"decisions"` // the possible decisions; the first is the plain approval
	RequestedAt time.Time       `json:"requestedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	Status      ApprovalStatus  `json:"status"`
	Decision    Decision        `json:"decision,omitempty"`
	DecidedAt   time.Time       `json:"decidedAt,omitzero"`
	EditHash    string          `json:"editHash,omitempty"` // hash of the user's edits as sent
	SeenHash    string          `json:"seenHash,omitempty"` // hash of the arguments that the user edited
	Rule        string          `json:"rule,omitempty"`     // the policy rule that requires the approval
	Findings    []Finding       `json:"findings,omitempty"` // parts that come from strangers; at most MaxFindings
	Refusals    int             `json:"refusals,omitempty"` // number of refused decisions; each is in the audit log

	// PasskeyFor are the decisions that need a passkey, by the rules when the card was made. The rules in force decide.
	PasskeyFor []Decision `json:"passkeyFor,omitempty"`

	InsteadOf []EarlierCard `json:"insteadOf,omitempty"` // cards that waited already; at most MaxEarlier
	// RestsOn is what a yes rests on (ProposedCall.RestsOn). The preview of an earlier release did not have it.
	RestsOn []tool.Precondition `json:"restsOn,omitempty"`
}

// Shown returns the preview as the card shows it: with the facts that a yes rests on.
func (a Approval) Shown() tool.Preview { return a.Preview.On(a.RestsOn) }

// An EarlierCard is a waiting card of the same conversation that a newer card may replace. It is for the same tool and
// belongs to an earlier request. The two cards have a target in common, or show the same value in the same field.
type EarlierCard struct {
	ApprovalID  string    `json:"approvalId"`
	Title       string    `json:"title"`
	RequestedAt time.Time `json:"requestedAt"`
}

// A Finding describes a part of a call that comes from strangers, or that the user's own words do not contain
// (shared/agent/taint).
type Finding struct {
	Reason string `json:"reason"`           // target, mention, copied, leaking, too_much, file, read, composed or agent
	Origin string `json:"origin,omitempty"` // where the text was read; empty: it was not read anywhere
	Text   string `json:"text,omitempty"`   // the text, cut to 500 bytes
}

// MaxFindings is the maximum number of findings on a card.
const MaxFindings = 10

// MaxEarlier is the maximum number of earlier cards that a card names.
const MaxEarlier = 4

// ApprovalStatus is the state of an Approval.
type ApprovalStatus string

// The states of an approval. Only an open approval can be decided.
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
	Comment    string              // of the decision
	Files      []attachment.Stored // of Comment
	HeldUntil  time.Time           // after an approval: the call cannot begin earlier; zero: there is no undo window
	NotBefore  time.Time           // of a postponed call: when it begins again; zero: it was not postponed
	WaitsFor   WaitsFor            // of a postponed call
	ReplacedBy string              // after a rejection: the approval that the user gave instead
	Proof      *decision.Signature // signature of the decision; see Decided
	Passkey    *passkey.Assertion  // confirmation of the decision with a passkey; see Decided
	Started    Started
	Result     json.RawMessage
	Returned   []attachment.Stored // the files of the result, which the run ReturnedOf stores
	ReturnedOf string
	Truncated  bool // Result is cut
	Ran        bool // it failed after it started; its effects until then remain
	Error      *ErrorInfo
	PlannedAt  time.Time
	UpdatedAt  time.Time

	counted   int       // effects that were counted when the approval was requested
	countedAt time.Time // when they were counted

	seq  int64 // number of the event that proposed it
	last int64 // number of its newest event
}

// Runnable reports whether the policy or the user allows the action and no process has started it.
func (a *Action) Runnable() bool {
	return a.Status == ActionPlanned && !a.RequiresApproval || a.Status == ActionAwaiting && a.Decision != ""
}

// Unasked reports whether the action needs an approval that has not been requested yet.
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

// Waiting reports whether the call waits for an approval, for the review of an unknown outcome, or for the client's
// answer.
func (a *Action) Waiting() bool {
	if a.Decision != "" {
		return false
	}
	return a.Status == ActionAwaiting || a.Status == ActionFailed && a.Execution == UnknownState && a.Kind == KindReview
}

// WaitsForClient reports whether the call waits for the client to run it.
func (a *Action) WaitsForClient() bool { return a.Waiting() && a.Kind == KindCall }

// A State is the result of folding a run's events.
type State struct {
	Status     Status
	Input      Input
	Turns      []Turn
	Actions    []*Action
	Cancelled  bool
	End        *End
	Cleaned    *Disposed
	Usage      model.Usage
	ModelCalls int   // model calls that were answered in this run
	Tokens     int   // tokens of those calls; estimated if the service did not count them
	Cost       int64 // cost of those calls, in millionths of the budget's currency

	Made []attachment.Stored // the files of the model's answers and of tools' results

	Compressions []Compression // of the model's context

	Waits Waits // for the model, since its last answer

	Plan *plan.Session // nil if the run has no plan

	byID    map[string]*Action // Actions by ID
	segment int                // number of turns before the current segment of the conversation (Segment)
	began   time.Time          // when the current segment began
}

// Waits is how long a run has waited for a model that is overloaded or has no quota left.
type Waits struct {
	Count int
	Since time.Time // of the first wait
	Until time.Time // when the model is asked again
}

// RecordOf returns the list of what an ended run did and did not do. It returns "" for a run that has not ended, and
// for runs of earlier releases.
func RecordOf(s *State) string {
	if s.End == nil {
		return ""
	}
	return s.End.Record
}

// Action returns the action with the ID, or nil.
func (s *State) Action(id string) *Action { return s.byID[id] }

// Current returns the actions of the newest turn, one for each of the model's calls, in the model's order. If an action
// was started again, the list holds only the newer one.
func (s *State) Current() []*Action {
	older := len(s.Actions) // actions of earlier turns come first
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

// Open returns the waiting actions ([Action.Waiting]).
func (s *State) Open() []*Action {
	var out []*Action
	for _, a := range s.Actions {
		if a.Waiting() {
			out = append(out, a)
		}
	}
	return out
}

// ToDispose returns the tools whose calls may have created something to remove, each once, in the order of their calls.
// Failed calls count; calls that never started do not.
func ToDispose(s *State) (tools []string) {
	for _, a := range s.Actions {
		if a.Disposable && a.Started.Owner != "" && !slices.Contains(tools, a.Tool) {
			tools = append(tools, a.Tool)
		}
	}
	return tools
}

// NeedsDisposal reports whether the run has ended and something that its calls created must still be removed.
func NeedsDisposal(s *State) bool { return s.End != nil && s.Cleaned == nil && len(ToDispose(s)) > 0 }

// Derived returns the status that follows from the rest of the state: awaiting while an action waits, executing while a
// call has no answer, otherwise planning.
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
