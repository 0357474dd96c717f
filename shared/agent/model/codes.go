package model

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// The codes of the errors of class Model that a caller may want to tell apart.
const (
	CodeBlocked    fault.Code = "blocked"           // the service refused the question or the answer
	CodeEmpty      fault.Code = "empty_answer"      // neither words nor calls
	CodeCut        fault.Code = "cut_answer"        // it ended in the middle, and is not a completion
	CodeUnreadable fault.Code = "unreadable_answer" // not an answer of Gemini's, or one that breaks its own rules
	CodeTooLarge   fault.Code = "answer_too_large"  // above the limits of this package
	CodeQuota      fault.Code = "quota"             // used up; RetryAfter says for how long, where it is known
	CodeOverloaded fault.Code = "overloaded"        // or failing or unreachable, after all attempts in time
	CodeRefused    fault.Code = "refused"           // the request, the key or the model's name is wrong
	CodeDeadline   fault.Code = "deadline"          // the context's deadline passed
	CodeCancelled  fault.Code = "cancelled"         // the context was cancelled
)

// FromContext returns the error for a context that ended before the answer came. It wraps ctx's error.
func FromContext(ctx context.Context) *fault.Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.New(fault.Model, CodeCancelled, "The model call was cancelled.").Because(ctx.Err())
	}
	return fault.New(fault.Model, CodeDeadline, "The model did not answer in time.").Because(ctx.Err())
}
