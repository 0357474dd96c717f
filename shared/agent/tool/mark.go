package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// The marks of an error say what its call has done.

// ambiguous marks an error of Execute that leaves it unknown whether the effect took place.
type ambiguous struct{ error }

func (a ambiguous) Unwrap() error { return a.error }

// Ambiguous marks err, returned by Execute, as leaving the outcome unknown. The loop then calls Reconcile. If Reconcile
// cannot find out the outcome either, the user is asked. An error with neither this mark nor that of [Ran] means that
// nothing happened.
func Ambiguous(err error) error { return ambiguous{err} }

// IsAmbiguous reports whether err leaves the outcome unknown. It is true for the error of an ended context.
func IsAmbiguous(err error) bool {
	return errors.As(err, &ambiguous{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// IsEnded reports whether err is the error of a call that ran to an end and failed. Such an error has a partial result
// ([Partial]), and leaves nothing unknown.
func IsEnded(err error) bool {
	return PartialResult(err) != nil && !IsAmbiguous(err) && !IsTransient(err)
}

// unanswered marks an ambiguous error of a request that may still be on its way.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Unanswered is [Ambiguous] for a request that got no answer. The request may still arrive, even if Reconcile finds
// that nothing happened.
func Unanswered(err error) error { return unanswered{Ambiguous(err)} }

// IsUnanswered reports whether the request may still arrive. It is true for the error of an ended context.
func IsUnanswered(err error) bool {
	return errors.As(err, &unanswered{}) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// unread marks an error in the answer to a completed call.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// Unread marks err, returned by Execute, as an error in the provider's answer only: the side effect took place. The
// call then counts as done, and its result says that the answer was unreadable. For a tool without a side effect, it is
// an ordinary error.
func Unread(err error) error { return unread{err} }

// forbidden returns the error of a call that ran and returned a result that the tool's own schema forbids.
func forbidden(tool string, err error) error {
	return Unread(fmt.Errorf("tool %s returned a result that its schema forbids: %w", tool, err))
}

// unreadableResult returns the result of a completed call whose answer could not be used. It names the invalid place in
// the answer and repeats none of its content.
func unreadableResult(err error) json.RawMessage {
	why := "it has an unexpected form"
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		why = strings.TrimPrefix(f.Field+": "+f.Message, ": ")
	}
	out, err := strictjson.Marshal(
		map[string]any{"done": true, "answer": "It was done. The answer could not be read: " + why + "."})
	if err != nil {
		panic(err) // unreachable: both values can be encoded
	}
	return out
}

// partial is an error of a call that returned something before it failed.
type partial struct {
	error
	result json.RawMessage
}

func (p partial) Unwrap() error { return p.error }

// Partial returns err, an error of Execute, with the result that the call had before it failed, such as the output of a
// command that timed out. The result is recorded with the outcome, and the model reads it beside the error. The marks
// of err stay. result must be JSON or encode as JSON.
func Partial(result any, err error) error {
	b, marshalErr := strictjson.Marshal(result)
	if marshalErr != nil {
		return errors.Join(err, fmt.Errorf("the partial result cannot be encoded as JSON: %w", marshalErr))
	}
	return partial{err, b}
}

// ran marks an error of a call that ran.
type ran struct{ error }

func (r ran) Unwrap() error { return r.error }

// Ran is [Partial] for a call that ran without success, such as a command with an exit code other than 0. Its effects
// remain. If the call returned nothing, result is nil.
func Ran(result any, err error) error {
	if result != nil {
		err = Partial(result, err)
	}
	return ran{err}
}

// HasRan reports whether err is the error of a call that ran ([Ran]).
func HasRan(err error) bool { return errors.As(err, &ran{}) }

// PartialResult returns the result that the call had before it failed with err, or nil.
func PartialResult(err error) json.RawMessage {
	var p partial
	errors.As(err, &p)
	return p.result
}

// transient marks an error after which the same call can be retried.
type transient struct{ error }

func (t transient) Unwrap() error { return t.error }

// Transient marks err, returned by Prepare or Execute, as proof that nothing happened and that a retry may succeed.
// Examples are a rate limit, and a provider that was down before it accepted anything.
func Transient(err error) error { return transient{err} }

// IsTransient reports whether nothing happened and a retry may succeed.
func IsTransient(err error) bool { return errors.As(err, &transient{}) }

// later marks an error of a call that is to begin again.
type later struct {
	error
	after time.Duration
}

func (l later) Unwrap() error { return l.error }

// Later marks err, returned by Execute of a tool without a side effect: the result that the call looks for does not
// exist yet. The call begins again after the duration, perhaps in another process; no process waits meanwhile.
// [Call.Since] tells the tool how long it has looked. The run's deadline ends the call too.
func Later(after time.Duration, err error) error { return later{err, after} }

// LaterAfter returns the duration of an error of [Later].
func LaterAfter(err error) (after time.Duration, ok bool) {
	var l later
	ok = errors.As(err, &l)
	return l.after, ok
}
