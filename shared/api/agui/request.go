package agui

import (
	"encoding/json"
	"fmt"
	"strings"

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
			return nil, fault.Invalid(at+"/status", "resolved or cancelled is needed")
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

// Words returns the user's message if it is the newest one, or "" if another message follows it or the request has
// none. field is the message's place in the request.
func (r Request) Words() (field, words string, err error) {
	at := len(r.Messages) - 1
	if at < 0 {
		return "", "", nil
	}
	field = fmt.Sprintf("messages/%d", at)
	var newest struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := strictjson.DecodeKnown(strictjson.Mend(r.Messages[at]), &newest); err != nil {
		return "", "", fault.Within(field, err)
	}
	if newest.Role != "user" {
		return "", "", nil
	}
	field += "/content"
	words, err = content(field, newest.Content)
	if err == nil && visible.Blank(words) {
		err = fault.Invalid(field, "a text is needed")
	}
	return field, words, err
}

// content reads a text, or a text in parts.
func content(field string, of json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(of, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(of, &parts) != nil {
		return "", fault.Invalid(field, "a text, or one in parts, is needed")
	}
	var texts []string
	for i, p := range parts {
		if p.Type != "text" {
			return "", fault.Invalid(fmt.Sprintf("%s/%d", field, i), "only text is accepted")
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n"), nil
}
