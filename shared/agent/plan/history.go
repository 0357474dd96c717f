package plan

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// An Action is the call of a step: a tool and its arguments.
type Action struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// A Triplet is one step of a task in the form of the seed (FR-305).
type Triplet struct {
	Reason      string          `json:"reason"`
	Action      Action          `json:"action"`
	Observation json.RawMessage `json:"observation"` // null until the call has an answer
}

// A LogEntry is one call of a session, with its task and step.
type LogEntry struct {
	Seq    int64     `json:"seq"` // number of the run's event that proposed it
	At     time.Time `json:"at"`
	TaskID string    `json:"taskId"` // empty: a call of the planning
	Step   int       `json:"step"`   // step of the task, from 1; 0 in the planning
	Triplet
	Source          string    `json:"source,omitempty"` // source of the observation, if it is text from strangers
	ApprovalID      string    `json:"approvalId,omitempty"`
	GrantID         string    `json:"grantId,omitempty"`
	ExecutionStatus Execution `json:"executionStatus"`

	Error *Trouble `json:"-"` // the error in Observation, if any
}

// observation returns the outcome of the call: its result, its error, or both if it returned something before it
// failed.
func (a *Act) observation() json.RawMessage {
	switch {
	case !a.Over:
		return nil
	case a.Error == nil:
		return a.Observation
	}
	b, err := strictjson.Marshal(struct {
		Error  *Trouble        `json:"error"`
		Result json.RawMessage `json:"result,omitempty"`
	}{a.Error, a.Observation})
	if err != nil { // the result is not JSON; the error can be encoded
		return strictjson.Text(a.Error.Message)
	}
	return b
}

func (a *Act) triplet() Triplet {
	return Triplet{a.Reason, Action{a.Tool, a.Args}, a.observation()}
}

// RawReactHistory returns the task's steps, oldest first, as JSON in a string, as the seed requires. It is made from
// the record.
func (t *TaskState) RawReactHistory() (string, error) {
	steps := []Triplet{}
	for _, a := range t.Acts {
		steps = append(steps, a.triplet())
	}
	b, err := strictjson.Marshal(steps)
	return string(b), err
}

// Log returns the session's calls, oldest first.
func (s *Session) Log() []LogEntry {
	log := []LogEntry{}
	for _, a := range s.log {
		e := LogEntry{Seq: a.Seq, At: a.At, Step: a.step, Triplet: a.triplet(), Source: a.Source,
			ApprovalID: a.ApprovalID, GrantID: a.Grant, ExecutionStatus: a.Execution}
		if a.Over {
			e.Error = a.Error
		}
		if t := s.taskOf[a.ID]; t != nil {
			e.TaskID = t.ID
		}
		log = append(log, e)
	}
	return log
}
