package agent

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/tool"
)

// RunStatus is a state of seed 000 §3.
type RunStatus string

// The run's states.
const (
	Queued    RunStatus = "queued"
	Planning  RunStatus = "planning"
	Awaiting  RunStatus = "awaiting_confirmation"
	Executing RunStatus = "executing"
	Completed RunStatus = "completed"
	Failed    RunStatus = "failed"
)

// ActionStatus is a state of seed 000 §3.
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

// Execution says what is known of the effect itself (seed 000 §9, executionStatus).
type Execution string

// What is known of the effect.
const (
	NotStarted   Execution = "not_started"
	Intent       Execution = "intent"    // about to be tried, or being tried
	Succeeded    Execution = "succeeded" // proven, or confirmed by the user
	FailedKnown  Execution = "failed"    // proven: nothing happened
	UnknownState Execution = "unknown"   // neither: the user is asked
)

// EventType names what happened.
type EventType string

// The events of a run.
const (
	RunQueued       EventType = "run.queued"
	RunStatusChange EventType = "run.status"
	ModelAnswered   EventType = "model.answered"
	ActionPlan      EventType = "action.planned"
	ActionWaits     EventType = "action.waiting"
	ActionDecided   EventType = "action.decided"
	ActionStarted   EventType = "action.started"
	ActionFinished  EventType = "action.finished"
	CancelRequested EventType = "run.cancel_requested"
	RunEnded        EventType = "run.ended"
)

// Event is one thing that happened, numbered from 1 within its run. Exactly the payload of its type is set.
type Event struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Type     EventType `json:"type"`
	ActionID string    `json:"actionId,omitempty"`
	Queued   *Question `json:"queued,omitempty"`
	Status   RunStatus `json:"status,omitempty"`
	Turn     *Turn     `json:"turn,omitempty"`
	Plan     *Plan     `json:"plan,omitempty"`
	Wait     *Wait     `json:"wait,omitempty"`
	Decided  *Decided  `json:"decided,omitempty"`
	Started  *Started  `json:"started,omitempty"`
	Finished *Finished `json:"finished,omitempty"`
	End      *End      `json:"end,omitempty"`
}

// Question is what the run was started with: the user's words, and the conversation before them, bounded: the thread's
// history as it was then, or the contents that a caller keeps for itself.
type Question struct {
	Prompt  string            `json:"prompt"`
	News    string            `json:"news,omitempty"` // what the model is told before it, of ours
	History []Message         `json:"history,omitempty"`
	Mark    string            `json:"mark,omitempty"`    // a word that nobody can have known: what begins with it in the history is the server's record
	Earlier []json.RawMessage `json:"earlier,omitempty"` // Gemini contents, verbatim
	Direct  bool              `json:"direct,omitempty"`  // the run is one call, and the model is not asked
}

// Turn is one answer of the model, stored before anything is done about it: it is never asked for again.
type Turn struct {
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content,omitempty"` // verbatim
	Text       string          `json:"text,omitempty"`
	Finish     string          `json:"finish,omitempty"`
	Correction string          `json:"correction,omitempty"`
	Calls      int             `json:"calls,omitempty"` // as many ActionPlan events follow
	Usage      model.Usage     `json:"usage"`
	Estimated  int             `json:"estimated,omitempty"` // tokens, by the bytes, where the service did not count them
}

// Tokens are those that the turn counts for; none for a turn that the model was not asked for in this run.
func (t Turn) Tokens() int {
	u := t.Usage
	return max(t.Estimated, u.Total, u.Prompt+u.Output+u.Thoughts)
}

// Plan is a call of the model as it was judged.
type Plan struct {
	Turn             int             `json:"turn"`  // from 1
	Index            int             `json:"index"` // in the model's order, from 0
	Again            int             `json:"again,omitempty"`
	CallID           string          `json:"callId,omitempty"`
	Tool             string          `json:"tool"`
	Args             json.RawMessage `json:"args,omitempty"` // canonical; absent where they could not be normalised
	ArgsHash         string          `json:"argsHash,omitempty"`
	Place            tool.Place      `json:"place,omitzero"`   // where the call acts, if it acts in one
	Edited           bool            `json:"edited,omitempty"` // the arguments are the user's, of an action that this one starts afresh
	SideEffect       bool            `json:"sideEffect,omitempty"`
	RequiresApproval bool            `json:"requiresApproval,omitempty"`
	Own              bool            `json:"own,omitempty"` // the user's own call, not the model's: nobody need be asked
	PolicyDecision   string          `json:"policyDecision,omitempty"`
	Rule             string          `json:"rule,omitempty"`
	Reason           string          `json:"reason,omitempty"`
	Allowed          []string        `json:"allowed,omitempty"` // the allowlist entries that an allow rests on
}

// Wait says that somebody else must answer the call.
type Wait struct {
	ApprovalID string          `json:"approvalId,omitempty"` // of an approval or a review
	Kind       Kind            `json:"kind"`
	ExpiresAt  time.Time       `json:"expiresAt"`
	Args       json.RawMessage `json:"args,omitempty"`     // canonical, where a changed tool reads the plan's anew, or the place is another
	ArgsHash   string          `json:"argsHash,omitempty"` // of those
	Place      tool.Place      `json:"place,omitzero"`     // of those
}

// Decided is what was decided about a waiting call.
type Decided struct {
	ApprovalID string          `json:"approvalId"`
	Decision   Decision        `json:"decision"`
	By         string          `json:"by"`
	Comment    string          `json:"comment,omitempty"`
	EditedArgs json.RawMessage `json:"editedArgs,omitempty"` // canonical; they replace the plan's
	ArgsHash   string          `json:"argsHash"`             // of what was approved
}

// Started is the intent, durable before the effect: whoever wrote it last may act, nobody else.
type Started struct {
	Owner   string `json:"owner"`
	Attempt int    `json:"attempt"`
	Handle  string `json:"handle,omitempty"`
}

// Finished is the outcome.
type Finished struct {
	Status    ActionStatus    `json:"status"`
	Execution Execution       `json:"execution"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *Problem        `json:"error,omitempty"`
}

// End is how the run ended.
type End struct {
	Status  RunStatus `json:"status"`
	Summary string    `json:"summary"`
	Error   *Problem  `json:"error,omitempty"`
}

// Problem is an error as it may be stored and shown.
type Problem struct {
	Class   fault.Class `json:"class"`
	Code    fault.Code  `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
}

// ProblemOf is the storable part of err.
func ProblemOf(err error) *Problem {
	e := fault.As(err)
	return &Problem{e.Class, e.Code, e.Message, e.Field}
}
