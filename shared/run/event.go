package run

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/tool"
)

// Status is a run's state (seed 000 §3).
type Status string

// The run's states.
const (
	Queued    Status = "queued"
	Planning  Status = "planning"
	Awaiting  Status = "awaiting_confirmation"
	Executing Status = "executing"
	Completed Status = "completed"
	Failed    Status = "failed"
)

// ActionStatus is an action's state (seed 000 §3).
type ActionStatus string

// The action's states.
const (
	ActionPlanned   ActionStatus = "planned"
	ActionAwaiting  ActionStatus = "awaiting_confirmation"
	ActionExecuting ActionStatus = "executing"
	ActionCompleted ActionStatus = "completed"
	ActionFailed    ActionStatus = "failed"
	ActionRejected  ActionStatus = "rejected"
)

// Execution is what is known of an action's effect (seed 000 §9, executionStatus).
type Execution string

// The states of an effect.
const (
	NotStarted   Execution = "not_started"
	Intent       Execution = "intent"    // about to be tried, or being tried
	Succeeded    Execution = "succeeded" // proven, or confirmed by the user
	FailedKnown  Execution = "failed"    // proven: nothing happened
	UnknownState Execution = "unknown"   // not proven either way: the user is asked
)

// EventType is the kind of an Event.
type EventType string

// The types of a run's events.
const (
	RunQueued         EventType = "run.queued"
	RunStatusChange   EventType = "run.status"
	ModelAnswered     EventType = "model.answered"
	ActionProposed    EventType = "action.planned"
	ActionWaits       EventType = "action.waiting"
	ActionDecided     EventType = "action.decided"
	ActionStarted     EventType = "action.started"
	ActionFinished    EventType = "action.finished"
	ContextCompressed EventType = "context.compressed"
	CancelRequested   EventType = "run.cancel_requested"

	RunEnded   EventType = "run.ended"
	RunCleaned EventType = "run.cleaned" // after its end, of a run whose calls have left something
)

// The types of the events of a run that plans (plan.Event.Type).
const (
	PlanProposed  EventType = plan.TypeProposed
	PlanConfirmed EventType = plan.TypeConfirmed
	PlanClosed    EventType = plan.TypeClosed
	PlanChanged   EventType = plan.TypeChanged
	GrantRevoked  EventType = plan.TypeRevoked
	TaskStarted   EventType = plan.TypeStarted
	TaskReflected EventType = plan.TypeReflected
	TaskFinished  EventType = plan.TypeFinished
)

// An Event is one change of a run, numbered from 1 within it. Exactly the payload of its type is set.
type Event struct {
	Seq      int64         `json:"seq"`
	At       time.Time     `json:"at"`
	Type     EventType     `json:"type"`
	ActionID string        `json:"actionId,omitempty"`
	Queued   *Input        `json:"queued,omitempty"`
	Status   Status        `json:"status,omitempty"`
	Turn     *Turn         `json:"turn,omitempty"`
	Proposed *ProposedCall `json:"plan,omitempty"`
	Wait     *Wait         `json:"wait,omitempty"`
	Decided  *Decided      `json:"decided,omitempty"`
	Started  *Started      `json:"started,omitempty"`
	Finished *Finished     `json:"finished,omitempty"`
	End      *End          `json:"end,omitempty"`

	Compressed *Compressed `json:"compressed,omitempty"`
	Planned    *plan.Event `json:"planned,omitempty"`
	Cleaned    *Cleaned    `json:"cleaned,omitempty"`
}

// Input is the input that a run was started with: the user's words and the bounded conversation before them, which
// is the thread's history at that time, or the contents that the client keeps itself.
type Input struct {
	Agent      string            `json:"agent,omitempty"` // the run's; empty: Assistant
	Prompt     string            `json:"prompt"`
	SystemNote string            `json:"news,omitempty"` // what the server tells the model before the user's words
	History    []Message         `json:"history,omitempty"`
	Mark       string            `json:"mark,omitempty"`     // random; marks the server's records in the history
	Contents   []json.RawMessage `json:"earlier,omitempty"`  // Gemini contents, verbatim
	SingleCall bool              `json:"direct,omitempty"`   // the run is one call, and the model is not asked
	Compress   bool              `json:"compress,omitempty"` // the run compresses its thread, and nothing else
	Told       *Told             `json:"told,omitempty"`     // with History verbatim: of the thread's contents
	Session    *Session          `json:"session,omitempty"`  // of a run that plans
	Via        *Via              `json:"via,omitempty"`      // another program's agent, whose words Prompt is

	// What is set of these holds for the whole run, whichever release or process goes on with it.
	Instructions string          `json:"instructions,omitempty"` // in place of the agent's
	Tools        []string        `json:"tools,omitzero"`         // names; nil: those that the agent has at the time
	Barred       []string        `json:"barred,omitempty"`       // tools that pages of the run's origin may not use
	Answer       json.RawMessage `json:"answer,omitempty"`       // JSON Schema of the answer; nil: it is words
	PageTools    []PageTool      `json:"pageTools,omitempty"`    // beside those; the client carries them out
	PageContext  []PageContext   `json:"pageContext,omitempty"`  // what the page says of itself
}

// A PageTool is a tool that a page has of its own, as the page describes it.
type PageTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// A PageContext is something that a page has its model know, and what it is.
type PageContext struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// Has reports whether the run began with the tool.
func (in Input) Has(name string) bool {
	return (in.Tools == nil || slices.Contains(in.Tools, name)) && !slices.Contains(in.Barred, name)
}

// OfPage reports whether the tool is its page's.
func (in Input) OfPage(name string) bool {
	return slices.ContainsFunc(in.PageTools, func(t PageTool) bool { return t.Name == name })
}

// A Turn is one answer of the model. It is stored before any of its calls is handled, and never requested again.
type Turn struct {
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content,omitempty"` // verbatim
	Text       string          `json:"text,omitempty"`
	Finish     string          `json:"finish,omitempty"`
	Correction string          `json:"correction,omitempty"`
	Calls      int             `json:"calls,omitempty"` // the number of ActionProposed events that follow
	Usage      model.Usage     `json:"usage"`
	Estimated  int             `json:"estimated,omitempty"` // tokens, where the service did not count them
	Cost       int64           `json:"cost,omitempty"`      // where the run's budget has prices (Budget.Cost)
	By         string          `json:"by,omitempty"`        // who signed Content (model.SignedBy); with Input.Told
}

// Tokens returns the tokens that the turn counts for: 0 for a turn that did not come from the model in this run.
func (t Turn) Tokens() int {
	u := t.Usage
	return max(t.Estimated, u.Total, u.Prompt+u.Output+u.Thoughts)
}

// A Plan is a call of the model as it was validated.
type ProposedCall struct {
	Turn             int             `json:"turn"`  // from 1
	Index            int             `json:"index"` // in the model's order, from 0
	Attempt          int             `json:"again,omitempty"`
	CallID           string          `json:"callId,omitempty"`
	Tool             string          `json:"tool"`
	Args             json.RawMessage `json:"args,omitempty"`  // canonical; absent if they could not be normalised
	Tried            string          `json:"tried,omitempty"` // what is shown of them then, in a step
	ArgsHash         string          `json:"argsHash,omitempty"`
	Place            tool.Place      `json:"place,omitzero"`   // the account or host that the call acts on, if any
	Edited           bool            `json:"edited,omitempty"` // the user edited the arguments
	SideEffect       bool            `json:"sideEffect,omitempty"`
	Final            bool            `json:"final,omitempty"`     // its success ends the run
	Untrusted        bool            `json:"untrusted,omitempty"` // its result is text from strangers
	Leaves           bool            `json:"leaves,omitempty"`    // what it makes is removed after the run (tool.Spec)
	RequiresApproval bool            `json:"requiresApproval,omitempty"`
	UserInitiated    bool            `json:"own,omitempty"` // the user's call, not the model's: no approval
	PolicyDecision   string          `json:"policyDecision,omitempty"`
	Rule             string          `json:"rule,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	Allowed          []string        `json:"allowed,omitempty"`   // ids of the allowlist entries that allowed the call
	Narrows          *tool.Narrowing `json:"narrows,omitempty"`   // what may be called after it
	Reasoning        string          `json:"reasoning,omitempty"` // the model's, of a run that plans
	Grant            string          `json:"grant,omitempty"`     // id of that of the confirmed plan which allowed the call
	Ruled            *Ruled          `json:"ruled,omitempty"`     // what the tool said of this one call

	Compensates *ActionRef `json:"compensates,omitempty"` // what the call takes back, where it does (tool.Compensation)
}

// AsksAlways reports whether the call needs its user's yes whatever the policy allows, exactly as it is shown.
func (c ProposedCall) AsksAlways() bool { return c.Compensates != nil }

// ActionRef names an action of a run.
type ActionRef struct {
	RunID    string `json:"runId"`
	ActionID string `json:"actionId"`
}

// Ruled is what is kept of what a tool says of one call (tool.Ruling).
type Ruled struct {
	Class tool.Class `json:"class"`
	Facts tool.Facts `json:"facts,omitempty"`
}

// RuledBy returns what is kept of the ruling, which may be nil.
func RuledBy(r *tool.Ruling) *Ruled {
	if r == nil {
		return nil
	}
	return &Ruled{r.Class, r.Facts}
}

// Of returns the class of the call, or "" where its tool says nothing of single calls.
func (r *Ruled) Of() tool.Class {
	if r == nil {
		return ""
	}
	return r.Class
}

// Same reports whether both are the same; either may be nil.
func (r *Ruled) Same(as *Ruled) bool {
	if r == nil || as == nil {
		return r == as
	}
	return r.Class == as.Class && maps.Equal(r.Facts, as.Facts)
}

// A Wait records that the call waits for an answer from its user or its client.
type Wait struct {
	ApprovalID string          `json:"approvalId,omitempty"` // of an approval or a review
	Kind       Kind            `json:"kind"`
	ExpiresAt  time.Time       `json:"expiresAt"`
	Args       json.RawMessage `json:"args,omitempty"`     // canonical; set if they or the place have changed
	ArgsHash   string          `json:"argsHash,omitempty"` // set with Args
	Place      tool.Place      `json:"place,omitzero"`     // set with Args
	Ruled      *Ruled          `json:"ruled,omitempty"`    // set if it has changed
}

// Decided is the decision about a waiting call.
type Decided struct {
	ApprovalID string          `json:"approvalId"`
	Decision   Decision        `json:"decision"`
	By         string          `json:"by"`
	Comment    string          `json:"comment,omitempty"`
	EditedArgs json.RawMessage `json:"editedArgs,omitempty"` // canonical; they replace the plan's
	ArgsHash   string          `json:"argsHash"`             // of what was approved
	Ruled      *Ruled          `json:"ruled,omitempty"`      // of the edited arguments
	HeldUntil  time.Time       `json:"heldUntil,omitzero"`   // until when a yes may be taken back, and nothing is begun
	ReplacedBy string          `json:"replacedBy,omitempty"` // with a rejection: the approval that was given instead
}

// Started is the intent, durable before the effect: only the process that wrote the last one may act.
type Started struct {
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt"`
	Handle  string `json:"handle,omitempty"`

	// Set together where a call that nobody has decided about acts elsewhere than was planned, because a call before it
	// in its turn has led there (tool.Spec.Moves).
	ArgsHash string     `json:"argsHash,omitempty"`
	Place    tool.Place `json:"place,omitzero"`

	Grant string `json:"grant,omitempty"` // id of that of the confirmed plan on which the intent rests, and no other yes
}

// Same reports whether both are the same process's beginning of the same call, whatever it rests on.
func (s Started) Same(other Started) bool {
	s.Grant = other.Grant
	return s == other
}

// Finished is the outcome of a call.
type Finished struct {
	Status    ActionStatus    `json:"status"`
	Execution Execution       `json:"execution"`
	Result    json.RawMessage `json:"result,omitempty"`    // beside an error: what the call returned before it failed
	Truncated bool            `json:"truncated,omitempty"` // Result is what the call returned, cut
	Error     *ErrorInfo      `json:"error,omitempty"`
	Err       error           `json:"-"` // what the tool returned, where this process has just called it; not stored
}

// End is how the run ended.
type End struct {
	Status  Status     `json:"status"`
	Summary string     `json:"summary"`
	Words   int        `json:"words,omitempty"`  // bytes of the model's own words at the beginning of Summary
	Record  string     `json:"record,omitempty"` // what was done and what was not, from the events alone
	Error   *ErrorInfo `json:"error,omitempty"`
}

// Cleaned is what became of what a run's calls had left when it ended.
type Cleaned struct {
	Removed int        `json:"removed"`         // things, such as containers, in the last try
	Error   *ErrorInfo `json:"error,omitempty"` // why it was given up: something may be left
}

// A Problem is an error in the form that is stored and shown.
type ErrorInfo struct {
	Class   fault.Class `json:"class"`
	Code    fault.Code  `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
	Overrun *Overrun    `json:"overrun,omitempty"` // with CodeRunBudget, of a run's end
}

// Err returns what was stored as an error again.
func (i *ErrorInfo) Err() error {
	return &fault.Error{Class: i.Class, Code: i.Code, Message: i.Message, Field: i.Field}
}

// ErrorInfoOf returns the part of err that may be stored and shown.
func ErrorInfoOf(err error) *ErrorInfo {
	e := fault.As(err)
	return &ErrorInfo{Class: e.Class, Code: e.Code, Message: e.Message, Field: e.Field}
}
