package api

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// ask decodes the request of POST /run and /run/stream.
func (r *request) ask() (q loop.StartRequest, p loop.Prompt, err error) {
	var in struct {
		Prompt         string          `json:"prompt"`
		ThreadID       *string         `json:"threadId"`
		ResponseSchema json.RawMessage `json:"responseSchema"`
		Attachments    []attachedBody  `json:"attachments"`
		Thoughts       bool            `json:"thoughts"`
		chosenBody
	}
	hash, err := r.decode(&in)
	if err != nil {
		return q, p, err
	}
	key, err := r.key()
	switch {
	case in.ThreadID != nil && !run.ValidID(*in.ThreadID):
		return q, p, fault.Invalid("threadId", "invalid ID")
	case err != nil:
		return q, p, err
	}
	q.Key, q.BodyHash = key, hash
	if in.ThreadID != nil {
		q.ThreadID = *in.ThreadID
	}
	p.Text, p.Thoughts = in.Prompt, in.Thoughts
	if string(in.ResponseSchema) != "null" {
		p.Answer = in.ResponseSchema
	}
	if err = r.asks(&q, &p, "prompt", in.chosenBody); err == nil {
		p.Files, err = filesOf(in.Attachments)
	}
	return q, p, err
}

// chosenBody has the fields that choose the agent and the model, and describe the client's locale.
type chosenBody struct {
	Agent      *string `json:"agent"`
	Model      *string `json:"model"`
	TerminalID *string `json:"terminalId"`
	localeBody
}

// asks validates the prompt and the choices in of, and completes p and q. field is the prompt's field in the body, for
// errors.
func (r *request) asks(q *loop.StartRequest, p *loop.Prompt, field string, of chosenBody) error {
	locale, err := of.locale()
	switch {
	case visible.Blank(p.Text):
		return fault.Invalid(field, "a prompt is required")
	case len(p.Text) > loop.MaxPrompt:
		return fault.Invalid(field, "the prompt is longer than %d bytes", loop.MaxPrompt)
	case of.TerminalID != nil && !run.ValidID(*of.TerminalID):
		return fault.Invalid("terminalId", "invalid ID")
	case err != nil:
		return err
	}
	if p.Model, err = modelOf(of.Model); err != nil {
		return err
	}
	if of.TerminalID != nil {
		p.Terminal = *of.TerminalID
		if of.Agent == nil {
			of.Agent = new(run.Terminal)
		}
	}
	q.UID, q.Email, q.Origin, q.Locale = r.uid, r.email, r.Header.Get("Origin"), locale
	if !r.own() {
		p.Barred = r.api.Loop.Agents.Barred(q.Origin)
	}
	q.Agent, err = chosen(r.api.Loop.Agents, of.Agent, q.ThreadID != "" && !q.Opens)
	return err
}

// modelOf returns the model that a request chooses, or "". The loop checks that the operator offers it.
func modelOf(field *string) (string, error) {
	switch {
	case field == nil:
		return "", nil
	case *field == "":
		return "", fault.Invalid("model", "a model name is required")
	}
	return *field, nil
}

// own reports whether the request comes from a page of this same host, which is the console.
func (r *request) own() bool {
	_, host, ok := strings.Cut(r.Header.Get("Origin"), "://")
	return ok && host == r.Host
}

// key returns the Idempotency-Key, or "".
func (r *request) key() (string, error) {
	key, keys := r.Header.Get("Idempotency-Key"), len(r.Header.Values("Idempotency-Key"))
	if keys > 1 || keys == 1 && key == "" || len(key) > 255 || !printable(key) {
		return "", fault.Invalid("Idempotency-Key", "must be one key of 1 to 255 printable characters")
	}
	return key, nil
}

func printable(s string) bool {
	for _, c := range s {
		if c < 0x21 || c > 0x7e {
			return false
		}
	}
	return utf8.ValidString(s)
}
