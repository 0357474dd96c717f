package agui

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/stream"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Request has the fields of a client's RunAgentInput that count.
type Request struct {
	ThreadID  string            `json:"threadId"` // the client's ID for the conversation
	RunID     string            `json:"runId"`    // the client's ID for this request
	State     json.RawMessage   `json:"state"`
	Messages  []json.RawMessage `json:"messages"`
	Tools     []toolOfPage      `json:"tools"`
	Context   []run.PageContext `json:"context"`
	Forwarded json.RawMessage   `json:"forwardedProps"`
	Resume    []resumed         `json:"resume"`
	Protocol  string            `json:"protocolVersion"` // "" if older than 1.0
}

// resumed is a client's answer to an interrupt.
type resumed struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
}

// An Answer is the user's answer to an interrupt.
type Answer struct {
	ApprovalID string
	Payload    json.RawMessage
	Field      string // place in the request, for errors
}

// maxResumed is the maximum number of interrupts in one request.
const maxResumed = 100

// Check validates the client's IDs.
func (r Request) Check() error {
	if err := stream.CheckID("threadId", r.ThreadID); err != nil {
		return err
	}
	return stream.CheckID("runId", r.RunID)
}

// Answers returns the user's answers, which must all belong to one run. A cancelled interrupt yields no answer: nothing
// is decided, and it still waits.
func (r Request) Answers() (answers []Answer, err error) {
	if len(r.Resume) > maxResumed {
		return nil, fault.Invalid("resume", "at most %d interrupts in one request", maxResumed)
	}
	for i, entry := range r.Resume {
		at := fmt.Sprintf("resume/%d", i)
		runID, of := run.RunOfApproval(entry.InterruptID)
		switch {
		case !of:
			return nil, fault.Invalid(at+"/interruptId", "invalid interrupt ID")
		case entry.Status == "cancelled":
			continue
		case entry.Status != "resolved":
			return nil, fault.Invalid(at+"/status", "must be resolved or cancelled")
		}
		if len(answers) > 0 {
			if first, _ := run.RunOfApproval(answers[0].ApprovalID); first != runID {
				return nil, fault.Invalid(at+"/interruptId", "all answers in one request must be for the same run")
			}
		}
		answers = append(answers, Answer{entry.InterruptID, entry.Payload, at + "/payload"})
	}
	return answers, nil
}

// Words are the user's newest message. Without text, there is none: another message follows it, or the request has no
// messages.
type Words struct {
	Text  string
	Files []stream.File
	Field string // place in the request
}

// Words returns the user's message if it is the newest one.
func (r Request) Words() (w Words, err error) {
	at := stream.Newest(r.Messages)
	if at < 0 {
		return w, nil
	}
	field := fmt.Sprintf("messages/%d", at)
	var newest struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	used := strictjson.Pick(strictjson.Mend(r.Messages[at]), "role", "content")
	if err := strictjson.DecodeKnown(used, &newest); err != nil {
		return w, fault.Within(field, err)
	}
	if newest.Role != "user" {
		return w, nil
	}
	w.Field = field + "/content"
	w.Text, err = content(w.Field, newest.Content, func(at string, p part) error {
		f, err := p.file(at)
		w.Files = append(w.Files, f)
		return err
	})
	if err == nil && visible.Blank(w.Text) {
		err = fault.Invalid(w.Field, "a text is required")
	}
	return w, err
}
