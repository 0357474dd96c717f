package countersign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Errors to test for with errors.Is.
var (
	ErrNoSession = errors.New("countersign: the session does not exist, or belongs to another user")
	ErrClosed    = errors.New("countersign: the agent is closed")

	// ErrCommandDenied is the error of Shell.Exec for a command that Options.Commands does not allow, or that only a
	// shell can interpret. Its text names the refused part. No part of the command has run.
	ErrCommandDenied = errors.New("countersign: the command is denied")

	// ErrContextFull is joined to the error of a run whose next request would exceed the model's context window and
	// cannot be shortened. The request was not sent.
	ErrContextFull = errors.New("countersign: the conversation is larger than the model's context window")
)

// Class is one of the five classes of an [Error].
type Class string

// The classes.
const (
	ClassValidation Class = "ValidationError"    // the input is invalid; Field names it
	ClassAuth       Class = "AuthError"          // it does not exist, or belongs to another user
	ClassPolicy     Class = "PolicyError"        // a rule, a decision or a limit forbids it
	ClassTool       Class = "ToolExecutionError" // a tool or the store failed
	ClassModel      Class = "ModelError"         // Gemini failed, or its answer cannot be used
)

// Error is an error of one of five classes. Its texts have no content of the conversation and no secret.
type Error struct {
	Class      Class
	Code       string        // identifies the error within its class; programs can switch on it
	Message    string        // one sentence for people
	Field      string        // of [ClassValidation]: the invalid field of Options or path in JSON
	RetryAfter time.Duration // how long to wait before a retry; 0: unknown

	cause error
}

// Error returns the class, the code, the field and the message.
func (e *Error) Error() string {
	return (&fault.Error{Class: fault.Class(e.Class), Code: fault.Code(e.Code), Message: e.Message,
		Field: e.Field}).Error()
}

// Unwrap returns the cause, or nil if the error happened in another process.
func (e *Error) Unwrap() error { return e.cause }

// public converts an error of the packages below to a public one.
func public(err error) error {
	var own *Error
	var open *OpenError
	var returned programError
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &returned):
		return returned.error
	case errors.As(err, &own), errors.As(err, &open), errors.Is(err, ErrNoSession), errors.Is(err, ErrClosed):
		return err
	case !errors.As(err, &f) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return err
	}
	f = fault.As(err)
	return &Error{Class(f.Class), string(f.Code), f.Message, f.Field, f.RetryAfter, err}
}

// programError wraps an error that a function of Options returned. The caller gets that error unchanged.
type programError struct{ error }

// OpenError refuses a second run in a session whose last run has not ended.
type OpenError struct {
	RunID     string
	Status    Status     // [Running], [CutOff] or [Waiting]
	Approvals []Approval // the approvals that the run waits for
}

// Error says how to continue the session's run.
func (e *OpenError) Error() string {
	needs := map[Status]string{Running: "it is being moved", CutOff: "it was cut off; call Continue",
		Waiting: "it waits for decisions; Resolve them, or Abandon it"}
	return fmt.Sprintf("countersign: the session's run %s has not ended: %s", e.RunID, needs[e.Status])
}

// ToolError is an error of a tool whose text the model gets word for word. From an effect it also means that nothing
// happened.
type ToolError struct {
	Message string // for the model
	Err     error  // the cause, for the program; can be nil
}

// ToolErrorf returns a [*ToolError] with the formatted text. The verb %w sets its cause.
func ToolErrorf(format string, args ...any) *ToolError {
	err := fmt.Errorf(format, args...)
	return &ToolError{err.Error(), errors.Unwrap(err)}
}

// Error returns the text.
func (e *ToolError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }
