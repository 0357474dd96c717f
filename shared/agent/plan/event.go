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

// Type returns the type of the event's payload, or "" where not exactly one is set.
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

// Proposed is a plan that waits for its user from now on.
type Proposed struct {
	Plan       json.RawMessage `json:"plan"` // canonical
	Hash       string          `json:"hash"` // that its approval is bound to
	ActionID   string          `json:"actionId"`
	ApprovalID string          `json:"approvalId"`
	Place      tool.Place      `json:"place,omitzero"` // the account that its grants are for, as its card shows it
}

// Confirmed is the user's yes to the plan that waits, or to what they have made of it.
type Confirmed struct {
	ApprovalID string          `json:"approvalId"`
	Hash       string          `json:"hash"`           // of the plan that is confirmed
	Plan       json.RawMessage `json:"plan,omitempty"` // canonical; set if the user has edited it
	Strict     bool            `json:"strict,omitempty"`
}

// How says why a plan waits no longer, or is not made, without having been confirmed.
type How string

// The values of How.
const (
	Refined  How = "refined"  // its user wants another one
	Rejected How = "rejected" // its user wants none
	Expired  How = "expired"  // nobody answered
	Replaced How = "replaced" // its card was out of date; it is proposed anew
	GivenUp  How = "given_up" // no plan was made of the changes that its user has asked for; the confirmed one goes on
)

// Closed says that the plan waits no longer.
type Closed struct {
	ApprovalID string `json:"approvalId"`
	How        How    `json:"how"`
	Words      string `json:"words,omitempty"` // the user's
}

// Changed are changes that applied at once.
type Changed struct {
	Changes []Change `json:"changes"`
}

// Revoked says that the user has taken a grant back.
type Revoked struct {
	GrantID string `json:"grantId"`
}

// Started says that a task is worked on from now on.
type Started struct {
	TaskID string `json:"taskId"`
}

// TaskReflected is what the model thought of the current task.
type TaskReflected struct {
	TaskID string `json:"taskId"`
	Step   int    `json:"step"` // of the task, from 1
	Reflection
	Refused string `json:"refused,omitempty"` // why its claim does not count
}

// Finished says that the current task is over.
type Finished struct {
	TaskID string     `json:"taskId"`
	Status TaskStatus `json:"status"` // COMPLETED or FAILED
	Result string     `json:"result,omitempty"`
	Error  string     `json:"error,omitempty"`
}

// A Reflection is what the model says of the current task, by the tool reflect (seed 004 §2.5).
type Reflection struct {
	Complete   bool     `json:"is_task_complete" jsonschema:"whether the goal of the task is reached"`
	Failed     bool     `json:"failed,omitempty" jsonschema:"whether it cannot be reached"`
	Reflection string   `json:"reflection" jsonschema:"what the last observation means for the task"`
	Result     string   `json:"result,omitempty" jsonschema:"what came of the task, for the tasks after it and for the user"`
	Changes    []Change `json:"changes,omitempty" jsonschema:"of tasks that are still to be done; only when this one is over"`
}

// Execution is what is known of a call's effect, in the words of a run.
type Execution string

// The values of Execution.
const (
	NotStarted Execution = "not_started"
	Intent     Execution = "intent"    // about to be tried, or being tried
	Succeeded  Execution = "succeeded" // proven
	Failed     Execution = "failed"    // proven: nothing happened
	Unknown    Execution = "unknown"   // not proven either way
)

// An Act is one call of the session as the run's record has it now.
type Act struct {
	ID          string // the action's
	Seq         int64  // of the event that it began with
	At          time.Time
	Reason      string // the model's
	Tool        string
	Args        json.RawMessage
	Effect      bool   // the tool has one
	Grant       string // the id of the grant that it rests on; empty: on none
	ApprovalID  string
	Execution   Execution
	Over        bool            // it has its answer
	Observation json.RawMessage // what the tool returned
	Error       *Trouble
	Source      string // where the observation comes from, if that is a stranger

	step int // of its task, from 1
}

// Trouble is the error of a call as it was observed.
type Trouble struct {
	Class   string `json:"class"`
	Code    string `json:"code"`
	Message string `json:"message"`
}
