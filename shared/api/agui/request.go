package agui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/tell"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Request is a client's RunAgentInput, as far as it counts.
type Request struct {
	ThreadID  string            `json:"threadId"` // the client's own word for the conversation
	RunID     string            `json:"runId"`    // and for this request
	State     json.RawMessage   `json:"state"`
	Messages  []json.RawMessage `json:"messages"`
	Tools     []toolOfPage      `json:"tools"`
	Context   []run.PageContext `json:"context"`
	Forwarded json.RawMessage   `json:"forwardedProps"`
	Resume    []resumed         `json:"resume"`
	Protocol  string            `json:"protocolVersion"` // "": older than 1.0
}

// resumed is what the client says of an interrupt.
type resumed struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
}

// An Answer is the user's answer to an interrupt.
type Answer struct {
	ApprovalID string
	Payload    json.RawMessage
	Field      string // where it stands in the request
}

// maxResumed is how many interrupts a request may name.
const maxResumed = 100

// Check checks the client's ids.
func (r Request) Check() error {
	if err := tell.CheckID("threadId", r.ThreadID); err != nil {
		return err
	}
	return tell.CheckID("runId", r.RunID)
}

// Answers returns the user's answers, all to one run. An interrupt that was cancelled has none: nothing is decided, and
// it waits on.
func (r Request) Answers() (answers []Answer, err error) {
	if len(r.Resume) > maxResumed {
		return nil, fault.Invalid("resume", "%d interrupts at most are answered at once", maxResumed)
	}
	for i, entry := range r.Resume {
		at := fmt.Sprintf("resume/%d", i)
		runID, of := run.RunOfApproval(entry.InterruptID)
		switch {
		case !of:
			return nil, fault.Invalid(at+"/interruptId", "this is not the id of an interrupt")
		case entry.Status == "cancelled":
			continue
		case entry.Status != "resolved":
			return nil, fault.Invalid(at+"/status", "resolved or cancelled is needed")
		}
		if len(answers) > 0 {
			if first, _ := run.RunOfApproval(answers[0].ApprovalID); first != runID {
				return nil, fault.Invalid(at+"/interruptId", "the answers of one request are to one run")
			}
		}
		answers = append(answers, Answer{entry.InterruptID, entry.Payload, at + "/payload"})
	}
	return answers, nil
}

// Words returns what the user has said last, or "" where somebody else has spoken since, or nobody at all.
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

// content reads a text, or one in parts.
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
			return "", fault.Invalid(fmt.Sprintf("%s/%d", field, i), "texts are taken, and nothing else")
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n\n"), nil
}
