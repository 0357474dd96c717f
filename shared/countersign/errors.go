package countersign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Errors that say what kind of thing went wrong, for errors.Is.
var (
	ErrNoSession = errors.New("countersign: there is no such session, or it is another user's")
	ErrClosed    = errors.New("countersign: the agent is closed")

	// ErrCommandDenied is the error of Shell.Exec for a command that Options.Commands does not allow, or that only a
	// shell can interpret. Its text names the refused part. No part of the command has run.
	ErrCommandDenied = errors.New("countersign: the command is denied")

	// ErrContextFull is joined to the error of a run whose next request would exceed the model's context window and
	// cannot be shortened. The request was not sent.
	ErrContextFull = errors.New("countersign: the conversation is larger than what the model reads")
)

// Class is one of the five classes of an [Error].
type Class string

// The classes.
const (
	ClassValidation Class = "ValidationError"    // the input is invalid; Field names it
	ClassAuth       Class = "AuthError"          // there is no such thing, or it is another user's
	ClassPolicy     Class = "PolicyError"        // a rule, a decision or a limit forbids it
	ClassTool       Class = "ToolExecutionError" // a tool or the store failed
	ClassModel      Class = "ModelError"         // Gemini failed, or its answer cannot be used
)

// Error is what failed, in one of five classes. Its texts hold no content of the conversation and no secret.
type Error struct {
	Class      Class
	Code       string        // within the class; switch on it
	Message    string        // one sentence for people
	Field      string        // of [ClassValidation]: the invalid field of Options or path in JSON
	RetryAfter time.Duration // when trying again makes sense; 0 if that is not known

	cause error
}

// Error returns the class, the code, the field and the message.
func (e *Error) Error() string {
	return (&fault.Error{Class: fault.Class(e.Class), Code: fault.Code(e.Code), Message: e.Message,
		Field: e.Field}).Error()
}

// Unwrap returns the cause, if there is one in this process.
func (e *Error) Unwrap() error { return e.cause }

// public returns an error of the packages below as this package's users see it.
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

// programError is an error that a function of Options returned. The caller gets that error unchanged.
type programError struct{ error }

// OpenError refuses a second run in a session whose last one has not ended.
type OpenError struct {
	RunID     string
	Status    Status     // [Running], [CutOff] or [Waiting]
	Approvals []Approval // that it waits for
}

// Error says what the session's run needs.
func (e *OpenError) Error() string {
	needs := map[Status]string{Running: "it is being moved", CutOff: "it was cut off; Continue goes on with it",
		Waiting: "it waits for decisions; Resolve them, or Abandon it"}
	return fmt.Sprintf("countersign: the session's run %s has not ended: %s", e.RunID, needs[e.Status])
}

// ToolError is an error of a tool that the model is to read: its text goes to the model word for word. Of an effect it
// also says that nothing happened.
type ToolError struct {
	Message string // for the model
	Err     error  // the cause, for the program; may be nil
}

// ToolErrorf returns a [*ToolError] with the text. With the verb %w it has a cause.
func ToolErrorf(format string, args ...any) *ToolError {
	err := fmt.Errorf(format, args...)
	return &ToolError{err.Error(), errors.Unwrap(err)}
}

// Error returns the text.
func (e *ToolError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }
