package api

import (
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// again is when a refused request is to be sent again.
const again = time.Second

// admit counts a request of a user until leave is called, unless this instance serves as many as it may. It is asked
// before anything is read, so that under an overload a refusal costs next to nothing, and nothing is begun that memory
// does not last for. The requests of the queue and of the scheduler are not counted: they carry out what was accepted,
// and their number is the queue's to bound.
func (a *API) admit() (leave func(), err error) {
	if a.serving.Add(1) > int64(a.concurrency()) {
		a.serving.Add(-1)
		return nil, fault.New(fault.Tool, fault.CodeOverloaded,
			"The server has as many requests as it can serve at once. Please try again.").After(again)
	}
	return func() { a.serving.Add(-1) }, nil
}

// concurrency is how many requests of users this instance serves at once.
func (a *API) concurrency() int {
	if a.Concurrency == 0 {
		return defaultConcurrency
	}
	return a.Concurrency
}
