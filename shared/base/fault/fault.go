// Package fault defines Countersign's error type. An error has one of the five classes of seed 000 §8, a message that
// clients may see, and an HTTP status. Code creates an error where the failure is detected and wraps it with %w on the
// way up. Only shared/api converts errors to HTTP responses.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Class is one of the five error classes of seed 000 §8.
type Class string

// The classes of errors.
const (
	Validation Class = "ValidationError"    // the input does not match the schema
	Auth       Class = "AuthError"          // no session, a missing scope, or an object of another user
	Policy     Class = "PolicyError"        // forbidden by a rule, a decision or a cap
	Tool       Class = "ToolExecutionError" // a provider or the server's own store failed
	Model      Class = "ModelError"         // Gemini failed, or its answer cannot be used
)

// Code identifies an error within its class; clients may switch on it.
type Code string

// The codes with an HTTP status of their own. Any other code has its class's status.
const (
	CodeTooLarge         Code = "body_too_large"
	CodeTimeout          Code = "request_timeout"
	CodeMethod           Code = "method_not_allowed"
	CodeMediaType        Code = "unsupported_media_type"
	CodeHeadersTooLarge  Code = "headers_too_large"
	CodeNoPath           Code = "no_such_path"
	CodeUpgrade          Code = "upgrade_required"
	CodeUnauthenticated  Code = "unauthenticated"
	CodeScope            Code = "scope_missing"
	CodeOrigin           Code = "origin_forbidden"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not_found"
	CodeAlreadyResolved  Code = "already_resolved"
	CodeStaleView        Code = "stale_view"
	CodeIntegrity        Code = "integrity"
	CodeNotApplicable    Code = "not_applicable"
	CodeBusy             Code = "busy"
	CodeKeyReused        Code = "idempotency_key_reused"
	CodeExpired          Code = "expired"
	CodeTooMany          Code = "too_many"
	CodeBudget           Code = "budget"
	CodeStoreUnavailable Code = "store_unavailable"
	CodeOverloaded       Code = "overloaded"
	CodeLeaseHeld        Code = "lease_held"
	CodeAgentGone        Code = "agent_gone"
	CodeReauth           Code = "reauth_required"
	CodeUnknownOutcome   Code = "unknown_outcome"
	CodeNotBound         Code = "not_bound"
	CodeNotWaiting       Code = "not_waiting"
	CodeRunOpen          Code = "run_open"
	CodeHostLogin        Code = "host_login"
	CodeHostKeyChanged   Code = "host_key_changed"
	CodeHostUnreachable  Code = "host_unreachable"
	CodeHostRefused      Code = "host_refused"
	CodeTerminalBusy     Code = "terminal_busy"
	CodeHostInUse        Code = "host_in_use"
	CodePasskeyRequired  Code = "passkey_required"
	CodePasskeyMissing   Code = "passkey_missing"
	CodePasskeyRefused   Code = "passkey_refused"
	CodeSecondFactor     Code = "second_factor"
	CodeInternal         Code = "internal"
)

// Error is the type of every error of Countersign. Message and Field are safe to show: they never hold a token, a body,
// an address list or a provider's raw answer. Err is for the log, and only after redaction.
type Error struct {
	Class      Class
	Code       Code
	Message    string        // one sentence for the user
	Field      string        // the input field at fault, as a JSON path, or empty
	RetryAfter time.Duration // the time after which a retry makes sense; zero if not known
	Err        error         // the cause, for errors.Is and the log; never shown
}

// Error returns the class, the code and the safe message; the cause is available through Unwrap only.
func (e *Error) Error() string {
	s := string(e.Class) + " " + string(e.Code)
	if e.Field != "" {
		s += " (" + e.Field + ")"
	}
	return s + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of class c.
func New(c Class, code Code, format string, args ...any) *Error {
	return &Error{Class: c, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a ValidationError for the input field. An empty field means the whole input.
func Invalid(field, format string, args ...any) *Error {
	e := New(Validation, "invalid", format, args...)
	e.Field = field
	return e
}

// NotFound returns the error for an object that does not exist or that belongs to another user. Both cases give the
// same bytes, so that a caller cannot tell them apart.
func NotFound() *Error { return New(Auth, CodeNotFound, "There is no such thing, or it is not yours.") }

// OrNotFound returns err, or [NotFound] if err is nil. It is for callers whose read succeeded but found no object.
func OrNotFound(err error) error {
	if err != nil {
		return err
	}
	return NotFound()
}

// Unavailable returns the error for a store or a queue that is temporarily unavailable because of err. Nothing was
// done, and the same request may succeed a few seconds later.
func Unavailable(message string, err error) *Error {
	return New(Tool, CodeStoreUnavailable, "%s", message).After(5 * time.Second).Because(err)
}

// Within returns a copy of the error whose field begins with field. It is for an error in a part of that field.
func Within(field string, err error) error {
	e := *As(err)
	e.Field = strings.TrimSuffix(field+"/"+e.Field, "/")
	return &e
}

// Because returns a copy of e with the cause err, which is logged and never shown.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// After returns a copy of e with the time after which a retry makes sense.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// As returns the Error in err's chain. For any other error, it returns a ToolExecutionError internal with err as its
// cause and a message without details.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return New(Tool, CodeInternal,
		"Something went wrong on our side. Nothing was done twice; please try again.").Because(err)
}

// Is reports whether err has the class and the code.
func Is(err error, c Class, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Class == c && e.Code == code
}

var statusOfCode = map[Code]int{
	CodeTooLarge: http.StatusRequestEntityTooLarge, CodeTimeout: http.StatusRequestTimeout,
	CodeMethod:    http.StatusMethodNotAllowed,
	CodeMediaType: http.StatusUnsupportedMediaType, CodeHeadersTooLarge: http.StatusRequestHeaderFieldsTooLarge,
	CodeNoPath: http.StatusNotFound, CodeUpgrade: http.StatusUpgradeRequired,
	CodeScope: http.StatusForbidden, CodeReauth: http.StatusForbidden, CodeOrigin: http.StatusForbidden,
	CodeForbidden: http.StatusForbidden, CodeNotFound: http.StatusNotFound,
	CodeAlreadyResolved: http.StatusConflict, CodeStaleView: http.StatusConflict, CodeIntegrity: http.StatusConflict,
	CodeNotApplicable: http.StatusConflict, CodeBusy: http.StatusConflict, CodeKeyReused: http.StatusConflict,
	CodeRunOpen:      http.StatusConflict,
	CodeTerminalBusy: http.StatusConflict,
	CodeHostInUse:    http.StatusConflict,
	CodeNotBound:     http.StatusNotImplemented, CodeExpired: http.StatusGone, CodeNotWaiting: http.StatusGone,
	CodeTooMany:          http.StatusTooManyRequests,
	CodeBudget:           http.StatusTooManyRequests,
	CodeStoreUnavailable: http.StatusServiceUnavailable, CodeOverloaded: http.StatusServiceUnavailable,
	CodeLeaseHeld:      http.StatusServiceUnavailable,
	CodeAgentGone:      http.StatusServiceUnavailable,
	CodeHostLogin:      http.StatusForbidden, // not 401: the caller's own token is valid
	CodeHostKeyChanged: http.StatusConflict,
	// Not 502: the host belongs to the user, and nothing in this service has failed.
	CodeHostUnreachable: http.StatusFailedDependency, CodeHostRefused: http.StatusFailedDependency,
	CodeInternal: http.StatusInternalServerError,
}

var statusOfClass = map[Class]int{
	Validation: http.StatusBadRequest, Auth: http.StatusUnauthorized, Policy: http.StatusForbidden,
	Tool: http.StatusBadGateway, Model: http.StatusBadGateway,
}

// Status returns the error's HTTP status for a request without a run (contract §1).
func (e *Error) Status() int {
	if s, ok := statusOfCode[e.Code]; ok {
		return s
	}
	if s, ok := statusOfClass[e.Class]; ok {
		return s
	}
	return http.StatusInternalServerError
}
