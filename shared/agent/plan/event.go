package plan

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// An Event is one step of a session that its run records. Exactly one payload is set.
type Event struct {
	Proposed  *Proposed      `json:"proposed,omitempty"`
	Confirmed *Confirmed     `json:"confirmed,omitempty"`
	Closed    *Closed        `json:"closed,omitempty"`
	Changed   *Changed       `json:"changed,omitempty"`
	Revoked   *Revoked       `json:"revoked,omitempty"`
	Started   *Started       `json:"started,omitempty"`
	Reflected *TaskReflected `json:"reflected,omitempty"`
	Finished  *Finished      `json:"finished,omitempty"`
}

// The types of events, as a run names them.
const (
	TypeProposed  = "plan.proposed"
	TypeConfirmed = "plan.confirmed"
	TypeClosed    = "plan.closed"
	TypeChanged   = "plan.changed"
	TypeRevoked   = "grant.revoked"
	TypeStarted   = "task.started"
	TypeReflected = "task.reflected"
	TypeFinished  = "task.finished"
)

// Type returns the type of the event's payload, or "" if the number of payloads is not one.
func (e Event) Type() string {
	found := ""
	for _, p := range []struct {
		set  bool
		name string
	}{
		{e.Proposed != nil, TypeProposed}, {e.Confirmed != nil, TypeConfirmed}, {e.Closed != nil, TypeClosed},
		{e.Changed != nil, TypeChanged}, {e.Revoked != nil, TypeRevoked}, {e.Started != nil, TypeStarted},
		{e.Reflected != nil, TypeReflected}, {e.Finished != nil, TypeFinished},
	} {
		switch {
		case p.set && found != "":
			return ""
		case p.set:
			found = p.name
		}
	}
	return found
}

// Proposed records a plan that now waits for its user.
type Proposed struct {
	Plan       json.RawMessage `json:"plan"` // canonical
	Hash       string          `json:"hash"` // the plan's approval is bound to it
	ActionID   string          `json:"actionId"`
	ApprovalID string          `json:"approvalId"`
	Place      tool.Place      `json:"place,omitzero"` // the account that the grants are for, as the card shows it
}

// Confirmed records that the user confirmed the waiting plan, or an edited version of it.
type Confirmed struct {
	ApprovalID string          `json:"approvalId"`
	Hash       string          `json:"hash"`           // hash of the confirmed plan
	Plan       json.RawMessage `json:"plan,omitempty"` // canonical; set if the user edited the plan
	Strict     bool            `json:"strict,omitempty"`
}

// How is the reason why a plan was closed without a confirmation.
type How string

// The values of How.
const (
	Refined  How = "refined"  // the user wants another plan
	Rejected How = "rejected" // the user wants no plan
	Expired  How = "expired"  // the user did not answer in time
	Replaced How = "replaced" // its card was out of date; the plan is proposed again
	GivenUp  How = "given_up" // no plan resulted from the requested changes; the confirmed plan continues
)

// Closed records that the plan no longer waits.
type Closed struct {
	ApprovalID string `json:"approvalId"`
	How        How    `json:"how"`
	Words      string `json:"words,omitempty"` // the user's comment
}

// Changed records changes that applied at once.
type Changed struct {
	Changes []Change `json:"changes"`
}

// Revoked records that the user revoked a grant.
type Revoked struct {
	GrantID string `json:"grantId"`
}

// Started records the start of a task.
type Started struct {
	TaskID string `json:"taskId"`
}

// TaskReflected records the model's reflection on the current task.
type TaskReflected struct {
	TaskID string `json:"taskId"`
	Step   int    `json:"step"` // step of the task, from 1
	Reflection
	Refused string `json:"refused,omitempty"` // why the model's claim does not count
}

// Finished records the end of the current task.
type Finished struct {
	TaskID string     `json:"taskId"`
	Status TaskStatus `json:"status"` // COMPLETED or FAILED
	Result string     `json:"result,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// A Reflection is the model's statement about the current task, in a call of the tool reflect (seed 004 §2.5).
type Reflection struct {
	Complete   bool     `json:"is_task_complete" jsonschema:"whether the goal of the task is reached"`
	Failed     bool     `json:"failed,omitempty" jsonschema:"whether it cannot be reached"`
	Reflection string   `json:"reflection" jsonschema:"what the last observation means for the task"`
	Result     string   `json:"result,omitempty" jsonschema:"what came of the task, for the tasks after it and for the user"`
	Changes    []Change `json:"changes,omitempty" jsonschema:"of tasks that are still to be done; only when this one is over"`
}

// Execution is the known state of a call's effect. Its values are those of a run.
type Execution string

// The values of Execution.
const (
	NotStarted Execution = "not_started"
	Intent     Execution = "intent"    // about to start, or in progress
	Succeeded  Execution = "succeeded" // proven
	Failed     Execution = "failed"    // proven: nothing happened
	Unknown    Execution = "unknown"   // not proven either way
)

// An Act is the current state of one call of the session, from the run's record.
type Act struct {
	ID          string // ID of the action
	Seq         int64  // number of the event that proposed it
	At          time.Time
	Reason      string // the model's reasoning
	Tool        string
	Args        json.RawMessage
	Effect      bool   // the tool has a side effect
	Grant       string // ID of the grant that allows it; empty: none
	ApprovalID  string
	Execution   Execution
	Over        bool            // it has its answer
	Observation json.RawMessage // result of the tool
	Error       *Trouble
	Source      string // source of the observation, if it is text from strangers

	step int // step of its task, from 1
}

// Trouble is the error of a call, as the model reads it.
type Trouble struct {
	Class   string `json:"class"`
	Code    string `json:"code"`
	Message string `json:"message"`
}
