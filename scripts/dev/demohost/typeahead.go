package demohost

import (
	"bytes"
	"io"
	"sync"
)

// typeahead stores typed keys until the prompt reads them.
type typeahead struct {
	mu     sync.Mutex
	more   *sync.Cond
	keys   []byte
	closed bool
}

const maxTypeahead = 64 << 10

func newTypeahead() *typeahead {
	t := &typeahead{}
	t.more = sync.NewCond(&t.mu)
	return t
}

func (t *typeahead) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = append(t.keys, p[:min(len(p), maxTypeahead-len(t.keys))]...)
	t.more.Broadcast()
}

func (t *typeahead) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.more.Broadcast()
}

func (t *typeahead) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.keys) == 0 && !t.closed {
		t.more.Wait()
	}
	if t.closed {
		return 0, io.EOF
	}
	n := 1 // a line at a time: what follows it may be for the program that the line starts
	if at := bytes.IndexByte(t.keys, '\r'); at != 0 {
		n = len(t.keys)
		if at > 0 {
			n = at
		}
	}
	n = copy(p, t.keys[:n])
	t.keys = t.keys[n:]
	return n, nil
}
