package child

import (
	"bytes"
	"sync"
)

// tailBytes is the part of a program's output that a [Tail] keeps.
const tailBytes = 8 << 10

// Tail is an [io.Writer] that keeps the end of a program's output, to show why the program did not start.
type Tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements [io.Writer].
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = bytes.Clone(t.buf[over:])
	}
	return len(p), nil
}

// String returns the end of the output.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
