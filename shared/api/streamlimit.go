package api

import (
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// defaultConcurrency is the number of requests that an instance serves at once if nothing is configured. It is the
// maximum that Cloud Run sends to one instance.
const defaultConcurrency = 1000

// holders counts the requests that each user holds open on this instance, as streams or while waiting. It protects the
// instance's concurrency: one user's open tabs must leave enough for everyone else. The zero value is ready to use.
type holders struct {
	mu   sync.Mutex
	open map[string]int
}

// take counts one more request of the user until leave is called. It returns false if the user already holds most
// requests.
func (h *holders) take(uid string, most int) (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open[uid] >= most {
		return nil, false
	}
	if h.open == nil {
		h.open = map[string]int{}
	}
	h.open[uid]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.open[uid]--; h.open[uid] == 0 {
			delete(h.open, uid)
		}
	}, true
}

// heldMost is the maximum number of requests that one user may hold open: a quarter of the instance's concurrency.
func (a *API) heldMost() int {
	return max(1, a.concurrency()/4)
}

// hold counts one more stream or socket of the user, or refuses it.
func (a *API) hold(uid string) (leave func(), err error) {
	leave, ok := a.holders.take(uid, a.heldMost())
	if !ok {
		return nil, fault.New(fault.Policy, fault.CodeTooMany, "You have %d streams open, which is the limit. "+
			"Close one, or try again later.", a.heldMost()).After(10 * time.Second)
	}
	return leave, nil
}

// streaming marks a route that answers with a stream, which counts as held open by its user.
func streaming(h handler) handler {
	return func(r *request) (any, error) {
		leave, err := r.api.hold(r.uid)
		if err != nil {
			return nil, err
		}
		defer leave()
		return h(r)
	}
}
