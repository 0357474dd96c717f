package demohost

import "sync"

// underway counts the running programs of a shell. A sync.WaitGroup does not suffice: a background job can start a
// program while another goroutine waits for the end of all programs.
type underway struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // nil: programs may begin; closed: no program begins, and none runs
}

// begin reports whether a program may start. If it may, the caller calls end after the program.
func (u *underway) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over != nil {
		return false
	}
	u.n++
	return true
}

func (u *underway) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.n == 0 && u.over != nil {
		close(u.over)
	}
}

// close prevents the start of further programs. It returns the number of running programs, and a channel that is closed
// when they have ended. Call it once.
func (u *underway) close() (n int, over <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = make(chan struct{})
	if u.n == 0 {
		close(u.over)
	}
	return u.n, u.over
}
