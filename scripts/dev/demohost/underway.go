package demohost

import "sync"

// underway counts the programs of a shell that run. A sync.WaitGroup would not do: what a command has put into the
// background may just begin a program while the end of all is awaited.
type underway struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // nil: programs may begin; closed: no program begins, and none runs
}

// begin reports whether a program may begin. If so, call end after the program.
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

// close lets no further program begin. It returns the number of running programs, and a channel that is closed when
// they have ended. It is called once.
func (u *underway) close() (n int, over <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = make(chan struct{})
	if u.n == 0 {
		close(u.over)
	}
	return u.n, u.over
}
