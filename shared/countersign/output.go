package countersign

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// SendAs is [Session.Send] with an answer of type T. It works with every Gemini model, and together with the agent's
// own tools. T's schema becomes the schema of a tool, final_answer, and the arguments of its call are the answer.
// Invalid arguments go back to the model with the mistakes, and the last model call of the run must call that tool.
// The error is an [*OutputError] if no valid answer came, and otherwise the error of Send. While the run waits, the
// value is zero and Result.Status is [Waiting].
func SendAs[T any](ctx context.Context, s *Session, prompt string, files ...Attachment) (v T, res *Result, err error) {
	form, wrapped, err := formOf[T]()
	if err != nil {
		return v, nil, public(err)
	}
	var answer json.RawMessage
	res, err = s.complete(ctx, func(ctx context.Context) (*move, error) {
		m, err := s.sending(ctx, prompt, files, form)
		if m != nil {
			m.answer = &answer
		}
		return m, err
	})
	var e *Error
	switch {
	case errors.As(err, &e) && e.Code == string(run.CodeNoAnswer):
		return v, res, &OutputError{Output: res.Text, Err: err}
	case err != nil || res.Status == Waiting:
		return v, res, err
	}
	if v, err = decodeAs[T](answer, wrapped); err != nil {
		return v, res, &OutputError{Output: string(answer), Err: err}
	}
	return v, res, nil
}

// OutputError reports a run without an answer of the requested type.
type OutputError struct {
	Output string // the model's last text, or the JSON that could not be decoded as a T
	Err    error  // the reason
}

// Error returns the reason, without any of the received text.
func (e *OutputError) Error() string {
	return "countersign: no answer of the form asked for: " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *OutputError) Unwrap() error { return e.Err }

// value wraps an answer that is not an object.
type value[T any] struct {
	Value T `json:"value"`
}

// formOf returns the schema of an answer. A schema that is not an object is wrapped in one.
func formOf[T any]() (form json.RawMessage, wrapped bool, err error) {
	s, err := tool.SchemaOf[T]()
	if err == nil && s.Type != "object" {
		wrapped = true
		s, err = tool.SchemaOf[value[T]]()
	}
	if err != nil {
		return nil, false, fault.Invalid("T", "no schema for the type: %s", err).Because(err)
	}
	form, err = json.Marshal(s)
	return form, wrapped, err
}

func decodeAs[T any](answer json.RawMessage, wrapped bool) (v T, err error) {
	if wrapped {
		var w value[T]
		err = json.Unmarshal(answer, &w)
		return w.Value, err
	}
	err = json.Unmarshal(answer, &v)
	return v, err
}
