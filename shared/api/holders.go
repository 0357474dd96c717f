package api

import (
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// defaultConcurrency is how many requests an instance serves at once where nothing else is configured: the most that
// Cloud Run sends to one.
const defaultConcurrency = 1000

// holders counts the requests that each user holds open, as streams or waiting. The zero value has none. It counts
// those of one instance: what it protects is the instance's concurrency, of which one user's open tabs must leave
// enough to all others.
type holders struct {
	mu   sync.Mutex
	open map[string]int
}

// take counts one more request of the user until leave is called, unless the user has as many as most.
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

// heldMost is how many requests one user may hold open: a quarter of those that the instance serves at once.
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

// streaming is a route that answers with a stream, which its user holds open.
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
