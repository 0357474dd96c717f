package api

import (
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// again is the Retry-After of a request that admit refused.
const again = time.Second

// admit counts a user's request until leave is called, or refuses it if this instance already serves its maximum. It
// runs before anything is read, so a refusal under overload costs almost nothing, and no work begins that memory could
// not hold. Requests of the queue and of the scheduler are not counted: their work is already accepted, and the queue
// limits their number.
func (a *API) admit() (leave func(), err error) {
	if a.serving.Add(1) > int64(a.concurrency()) {
		a.serving.Add(-1)
		return nil, fault.New(fault.Tool, fault.CodeOverloaded,
			"The server has as many requests as it can serve at once. Please try again.").After(again)
	}
	return func() { a.serving.Add(-1) }, nil
}

// concurrency returns the maximum number of user requests that this instance serves at once.
func (a *API) concurrency() int {
	if a.Concurrency == 0 {
		return defaultConcurrency
	}
	return a.Concurrency
}
