package run

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// Status is the state of a run (seed 000 §3).
type Status string

// The states of a run.
const (
	Queued    Status = "queued"
	Planning  Status = "planning"
	Awaiting  Status = "awaiting_confirmation"
	Executing Status = "executing"
	Completed Status = "completed"
	Failed    Status = "failed"
)

// ActionStatus is the state of an action (seed 000 §3).
type ActionStatus string

// The states of an action.
const (
	ActionPlanned   ActionStatus = "planned"
	ActionAwaiting  ActionStatus = "awaiting_confirmation"
	ActionExecuting ActionStatus = "executing"
	ActionCompleted ActionStatus = "completed"
	ActionFailed    ActionStatus = "failed"
	ActionRejected  ActionStatus = "rejected"
)

// Execution is the state of an action's effect (seed 000 §9, executionStatus).
type Execution string

// The states of an effect.
const (
	NotStarted   Execution = "not_started"
	Intent       Execution = "intent"    // about to begin, or in progress
	Succeeded    Execution = "succeeded" // proven, or confirmed by the user
	FailedKnown  Execution = "failed"    // proven: nothing happened, or the call ran without success (Action.Ran)
	UnknownState Execution = "unknown"   // not proven either way; the user is asked
)

// EventType is the kind of an Event.
type EventType string

// The types of a run's events.
const (
	RunQueued         EventType = "run.queued"
	RunStatusChange   EventType = "run.status"
	ModelAnswered     EventType = "model.answered"
	ModelPostponed    EventType = "model.postponed" // the model is overloaded or has no quota left
	ActionProposed    EventType = "action.planned"
	ActionWaits       EventType = "action.waiting"
	ActionDecided     EventType = "action.decided"
	ActionStarted     EventType = "action.started"
	ActionPostponed   EventType = "action.postponed" // a call that begins later: nothing is there yet, or it must wait
	ActionFinished    EventType = "action.finished"
	ContextCompressed EventType = "context.compressed"
	CancelRequested   EventType = "run.cancel_requested"

	RunEnded   EventType = "run.ended"
	RunCleaned EventType = "run.cleaned" // after the end, if the run's calls created something to remove
)

// The types of events in a run with a plan (plan.Event.Type).
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

// An Event is one change of a run, numbered from 1 within the run. Only the payload field of its type is set.
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

	Postponed  *Postponed  `json:"postponed,omitempty"`
	Compressed *Compressed `json:"compressed,omitempty"`
	Planned    *plan.Event `json:"planned,omitempty"`
	Cleaned    *Disposed   `json:"cleaned,omitempty"`
}

// Input is the start of a run: the user's prompt and the conversation before it. The conversation is the bounded
// history of the thread at that time, or the contents that the client sent.
type Input struct {
	Agent      string            `json:"agent,omitempty"` // the run's agent; empty: Assistant
	Prompt     string            `json:"prompt"`
	SystemNote string            `json:"news,omitempty"` // the server's note to the model, before Prompt
	History    []Message         `json:"history,omitempty"`
	Mark       string            `json:"mark,omitempty"`     // random; marks the server's records in the history
	Contents   []json.RawMessage `json:"earlier,omitempty"`  // Gemini contents, verbatim
	SingleCall bool              `json:"direct,omitempty"`   // the run is one call and asks no model
	Compress   bool              `json:"compress,omitempty"` // the run only compresses its thread
	// Window is the part of the thread's contents to send, for an agent with verbatim history.
	Window      *ContextWindow `json:"told,omitempty"`
	Session     *Session       `json:"session,omitempty"` // nil for a run without a plan
	DelegatedBy *Delegate      `json:"via,omitempty"`     // another program's agent, which wrote Prompt
	// Waiting lists the proposals that still wait, if the client keeps the conversation. SystemNote refers to them by
	// number.
	Waiting []Message `json:"waiting,omitempty"`

	// The fields below are fixed for the whole run, whichever release or process continues it.
	Instructions string   `json:"instructions,omitempty"` // replaces the agent's instructions
	Tools        []string `json:"tools,omitzero"`         // names; nil: all tools that the agent has at the time
	Barred       []string `json:"barred,omitempty"`       // tools that pages of the run's origin cannot use
	// Answer is the JSON Schema of the typed answer; nil: the answer is text.
	Answer      json.RawMessage `json:"answer,omitempty"`
	Model       string          `json:"model,omitempty"`       // the model that the request chose; empty: the agent's
	Thoughts    bool            `json:"thoughts,omitempty"`    // the client shows the model's thoughts
	PageTools   []PageTool      `json:"pageTools,omitempty"`   // in addition to Tools; the client runs them
	PageContext []PageContext   `json:"pageContext,omitempty"` // what the page states about itself
	Notes       []Note          `json:"notes,omitempty"`       // the user's notes, for an agent that has them
	Preferences string          `json:"preferences,omitempty"` // what the model reads of the user's preferences

	// Files are the files of Prompt. FilesOf is the ID of this run, which stores them.
	Files   []attachment.Stored `json:"files,omitempty"`
	FilesOf string              `json:"filesOf,omitempty"`
	// FilesBefore means that an earlier prompt of the thread had a file.
	FilesBefore bool `json:"filesBefore,omitempty"`
}

// A PageTool is a tool that a web page provides, as the page describes it.
type PageTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// A PageContext is a piece of information that a page provides for its model, with a description.
type PageContext struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// Has reports whether the run can use the tool: it is in Tools or Tools is nil, and it is not in Barred.
func (in Input) Has(name string) bool {
	return (in.Tools == nil || slices.Contains(in.Tools, name)) && !slices.Contains(in.Barred, name)
}

// OfPage reports whether the page provides the named tool.
func (in Input) OfPage(name string) bool {
	return slices.ContainsFunc(in.PageTools, func(t PageTool) bool { return t.Name == name })
}

// A Turn is one answer of the model. It is stored before any of its calls is handled, and is never requested again.
type Turn struct {
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content,omitempty"` // verbatim
	Text       string          `json:"text,omitempty"`
	Finish     string          `json:"finish,omitempty"`
	Correction string          `json:"correction,omitempty"`
	Calls      int             `json:"calls,omitempty"` // the number of ActionProposed events that follow
	Usage      model.Usage     `json:"usage"`
	Estimated  int             `json:"estimated,omitempty"` // estimated tokens, if the service did not count them
	Cost       int64           `json:"cost,omitempty"`      // cost, if the budget has prices (Budget.Cost)
	Fallback   string          `json:"fallback,omitempty"`  // the fallback model that was asked; empty: the run's own
	// Files are the files of Content. The run stores them after those that it had.
	Files []attachment.Stored `json:"files,omitempty"`
	By    string              `json:"by,omitempty"` // signer of Content (model.SignedBy), if it may change
}

// Tokens returns the number of tokens that the turn counts for. It is 0 for a turn that no model call of this run
// produced.
func (t Turn) Tokens() int {
	u := t.Usage
	return max(t.Estimated, u.Total, u.Prompt+u.Output+u.Thoughts)
}

// A ProposedCall is a validated call of the model.
type ProposedCall struct {
	Turn       int             `json:"turn"`  // from 1
	Index      int             `json:"index"` // position in the model's order, from 0
	Attempt    int             `json:"again,omitempty"`
	CallID     string          `json:"callId,omitempty"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`  // canonical; absent if they could not be normalised
	Tried      string          `json:"tried,omitempty"` // without Args: the arguments as a step shows them
	ArgsHash   string          `json:"argsHash,omitempty"`
	Place      tool.Place      `json:"place,omitzero"`   // the account or host that the call acts on, if any
	Edited     bool            `json:"edited,omitempty"` // the user edited the arguments
	SideEffect bool            `json:"sideEffect,omitempty"`
	Final      bool            `json:"final,omitempty"`     // success ends the run
	Untrusted  bool            `json:"untrusted,omitempty"` // the result is text from strangers
	// Disposable means that the call creates something that must be removed after the run (tool.Spec.Leaves).
	Disposable       bool              `json:"leaves,omitempty"`
	RequiresApproval bool              `json:"requiresApproval,omitempty"`
	UserInitiated    bool              `json:"own,omitempty"` // the user made the call, not the model; no approval needed
	PolicyDecision   string            `json:"policyDecision,omitempty"`
	Rule             string            `json:"rule,omitempty"`
	Reason           string            `json:"reason,omitempty"`
	Allowed          []string          `json:"allowed,omitempty"`   // IDs of the allowlist entries that allowed the call
	Narrows          *tool.Restriction `json:"narrows,omitempty"`   // restricts the tools for later calls
	Reasoning        string            `json:"reasoning,omitempty"` // the model's reasoning; only in a run with a plan
	// Grant is the ID of the grant in the confirmed plan that allowed the call.
	Grant string         `json:"grant,omitempty"`
	Ruled *AppliedPolicy `json:"ruled,omitempty"` // the tool's policy for this call, if any
	After string         `json:"after,omitempty"` // see tool.Call.After

	// Warnings are the findings of the tool when the call was proposed (tool.Def.Warn). ArgsHash does not cover them.
	Warnings []tool.Warning `json:"warnings,omitempty"`
	// RestsOn is what a yes to the call rests on (tool.Def.Preconditions). The signature of the decision covers it.
	RestsOn []tool.Precondition `json:"restsOn,omitempty"`

	// Compensates is the action that this call undoes, if any (tool.Compensation).
	Compensates *ActionRef `json:"compensates,omitempty"`
	// Reopens is the earlier card for this call, if any. The call needs approval, whatever the policy allows.
	Reopens *Reopened `json:"reopens,omitempty"`

	// OwnProof is the signature of a call that the user made, if decisions are signed.
	OwnProof *decision.Signature `json:"ownProof,omitempty"`
}

// Reopened is a card that was rejected for a newer one, whose approval the user undid. Its call is proposed again in
// another run. That run has not read the texts that the first run read, so the findings come along.
type Reopened struct {
	ApprovalID string    `json:"approvalId"`
	Findings   []Finding `json:"findings,omitempty"`
}

// AsksAlways reports whether the call needs the user's approval exactly as shown, whatever the policy allows. It is
// true for a compensation.
func (c ProposedCall) AsksAlways() bool { return c.Compensates != nil }

// ActionRef names an action of a run.
type ActionRef struct {
	RunID    string `json:"runId"`
	ActionID string `json:"actionId"`
}

// AppliedPolicy is the stored part of a tool's policy decision for one call (tool.CallPolicy).
type AppliedPolicy struct {
	Class tool.Class `json:"class"`
	Facts tool.Facts `json:"facts,omitempty"`
}

// RuledBy returns the stored part of a ruling, or nil if r is nil.
func RuledBy(r *tool.CallPolicy) *AppliedPolicy {
	if r == nil {
		return nil
	}
	return &AppliedPolicy{r.Class, r.Facts}
}

// Of returns the class of the call, or "" if r is nil. A nil r means that the tool has no policy for single calls.
func (r *AppliedPolicy) Of() tool.Class {
	if r == nil {
		return ""
	}
	return r.Class
}

// Same reports whether both rulings are equal. Either may be nil.
func (r *AppliedPolicy) Same(as *AppliedPolicy) bool {
	if r == nil || as == nil {
		return r == as
	}
	return r.Class == as.Class && maps.Equal(r.Facts, as.Facts)
}

// A Wait records that the call waits for its user or its client.
type Wait struct {
	ApprovalID string          `json:"approvalId,omitempty"` // ID of an approval or a review
	Kind       Kind            `json:"kind"`
	ExpiresAt  time.Time       `json:"expiresAt"`
	Args       json.RawMessage `json:"args,omitempty"`     // canonical; set if the arguments or the place changed
	ArgsHash   string          `json:"argsHash,omitempty"` // set with Args
	Place      tool.Place      `json:"place,omitzero"`     // set with Args
	Ruled      *AppliedPolicy  `json:"ruled,omitempty"`    // set if it changed
	Effects    int             `json:"effects,omitempty"`  // counted for the day (registry.Limits.CountAllowed); 0: one
}

// Decided is the decision about a waiting call.
type Decided struct {
	ApprovalID string   `json:"approvalId"`
	Decision   Decision `json:"decision"`
	By         string   `json:"by"`
	Comment    string   `json:"comment,omitempty"`
	// Files are the files of Comment. The run stores them after those of its prompt.
	Files      []attachment.Stored `json:"files,omitempty"`
	EditedArgs json.RawMessage     `json:"editedArgs,omitempty"` // canonical; they replace the proposed arguments
	ArgsHash   string              `json:"argsHash"`             // hash of the approved call
	Ruled      *AppliedPolicy      `json:"ruled,omitempty"`      // the tool's policy for the edited arguments
	HeldUntil  time.Time           `json:"heldUntil,omitzero"`   // end of the undo window; the call begins later
	ReplacedBy string              `json:"replacedBy,omitempty"` // after a rejection: the approval given instead

	// Proof is the signature of the decision, if it permits something and decisions are signed.
	Proof *decision.Signature `json:"proof,omitempty"`
	// Passkey is the confirmation with a passkey, if the decision needs one.
	Passkey *passkey.Assertion `json:"passkey,omitempty"`
}

// Started is the intent. It is stored before the effect begins. Only the process that stored the newest intent may act.
type Started struct {
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt"`
	Handle  string `json:"handle,omitempty"`

	// ArgsHash and Place are set together if an earlier call of the turn moved this call to another account or host
	// (tool.Spec.Moves). Only a call without a decision can move.
	ArgsHash string     `json:"argsHash,omitempty"`
	Place    tool.Place `json:"place,omitzero"`

	Grant string `json:"grant,omitempty"` // ID of the grant that allows the call, if nothing else does
	// Found means that this process did not begin the call: its intent was lost when the store was restored from a
	// backup.
	Found bool `json:"found,omitempty"`
}

// Same reports whether both are the same process's intent for the same call. The grant does not matter.
func (s Started) Same(other Started) bool {
	s.Grant = other.Grant
	return s == other
}

// Finished is the outcome of a call.
type Finished struct {
	Status    ActionStatus    `json:"status"`
	Execution Execution       `json:"execution"`
	Result    json.RawMessage `json:"result,omitempty"`    // beside an error: the result before the failure
	Truncated bool            `json:"truncated,omitempty"` // Result is cut
	Ran       bool            `json:"ran,omitempty"`       // it failed after it started; its effects until then remain
	Error     *ErrorInfo      `json:"error,omitempty"`

	// Files are the files of the result. The run FilesOf, this one, stores them after those that it had.
	Files   []attachment.Stored `json:"files,omitempty"`
	FilesOf string              `json:"filesOf,omitempty"`

	// Not stored, and set only if this process has just made the call:
	Err      error             `json:"-"` // the tool's error
	Attached []attachment.File `json:"-"` // the content of Files, before it is stored
}

// Postponed says when a call begins again, or when the model is asked again.
type Postponed struct {
	Until time.Time `json:"until"`
	For   WaitsFor  `json:"for,omitempty"` // of a call
}

// WaitsFor says why a call begins again later. "" means that its service asked for the wait.
type WaitsFor string

// The other reasons for a wait.
const (
	WaitsForQuota  WaitsFor = "quota"  // this deployment's own quota of the service is used up for now
	WaitsForResult WaitsFor = "result" // what the call looks for is not there yet
)

// End describes how the run ended.
type End struct {
	Status  Status     `json:"status"`
	Summary string     `json:"summary"`
	Words   int        `json:"words,omitempty"`  // bytes at the start of Summary that are the model's own words
	Record  string     `json:"record,omitempty"` // the effects, and the calls without effect; made only from the events
	Error   *ErrorInfo `json:"error,omitempty"`

	Moments []tool.Moment `json:"moments,omitempty"` // moments named in Summary and Record
}

// Disposed is the outcome of removing what a run's calls created, after the run ended.
type Disposed struct {
	Removed int        `json:"removed"`         // number of things, such as containers, removed in the last attempt
	Error   *ErrorInfo `json:"error,omitempty"` // why the removal was abandoned; something may remain
}

// An ErrorInfo is an error in the form that is stored and shown.
type ErrorInfo struct {
	Class   fault.Class `json:"class"`
	Code    fault.Code  `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
	Overrun *Overrun    `json:"overrun,omitempty"` // set for a run that ended with CodeRunBudget
}

// Err returns the stored error as a *fault.Error.
func (i *ErrorInfo) Err() error {
	return &fault.Error{Class: i.Class, Code: i.Code, Message: i.Message, Field: i.Field}
}

// ErrorInfoOf returns the part of err that can be stored and shown.
func ErrorInfoOf(err error) *ErrorInfo {
	e := fault.As(err)
	return &ErrorInfo{Class: e.Class, Code: e.Code, Message: e.Message, Field: e.Field}
}
