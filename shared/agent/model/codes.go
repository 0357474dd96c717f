package model

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// The codes of errors of class Model that a caller may need to distinguish.
const (
	CodeBlocked    fault.Code = "blocked"           // the service refused the request or the answer
	CodeEmpty      fault.Code = "empty_answer"      // neither text nor calls
	CodeCut        fault.Code = "cut_answer"        // the answer is incomplete
	CodeUnreadable fault.Code = "unreadable_answer" // not an answer of Gemini, or one that breaks its own rules
	CodeTooLarge   fault.Code = "answer_too_large"  // exceeds the limits of this package
	CodeQuota      fault.Code = "quota"             // used up; RetryAfter is the time to wait, if known
	CodeOverloaded fault.Code = "overloaded"        // or failing or unreachable, after all attempts
	CodeRefused    fault.Code = "refused"           // the request, the key or the model's name is invalid
	CodeDeadline   fault.Code = "deadline"          // the context's deadline passed
	CodeCancelled  fault.Code = "cancelled"         // the context was cancelled
)

// FromContext returns the error for a context that ended before the answer arrived. It wraps ctx's error.
func FromContext(ctx context.Context) *fault.Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.New(fault.Model, CodeCancelled, "The model call was cancelled.").Because(ctx.Err())
	}
	return fault.New(fault.Model, CodeDeadline, "The model did not answer in time.").Because(ctx.Err())
}
