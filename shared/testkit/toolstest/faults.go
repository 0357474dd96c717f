package toolstest

import (
	"sync"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// faults holds the faults of a local service's operations, and the number of calls of each operation.
type faults struct {
	mu    sync.Mutex // an abandoned call may still be on its way when the next one comes
	queue map[string][]fakegoogle.Fault
	calls map[string]int
}

// next counts a call of the operation and returns its fault.
func (s *faults) next(op string) (f fakegoogle.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[op]++
	if q := s.queue[op]; len(q) > 0 {
		f, s.queue[op] = q[0], q[1:]
	}
	return f
}

// Break makes the next calls of the operation fail, in order.
func (s *faults) Break(op string, list ...fakegoogle.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue == nil {
		s.queue = map[string][]fakegoogle.Fault{}
	}
	s.queue[op] = list
}

// Calls returns the number of calls of the operation with a valid token.
func (s *faults) Calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}
