package demohost

import (
	"fmt"
	"io"
	"sync"
)

// output is the output of a command. Its first part is written to a file as it arrives, and its last part when the
// command has ended.
type output struct {
	mu    sync.Mutex
	more  *sync.Cond
	file  io.WriteCloser // nil: the output cannot be kept
	first []byte
	last  []byte // the end of the remaining output
	bytes int64
	over  bool
}

func newOutput(file io.WriteCloser) *output {
	o := &output{file: file}
	o.more = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.bytes += int64(n)
	kept := p[:min(n, firstKept-len(o.first))]
	if o.first = append(o.first, kept...); len(kept) > 0 && o.file != nil {
		if _, err := o.file.Write(kept); err != nil {
			o.file = nil // a full disk ends no command
		}
	}
	o.last = append(o.last, p[len(kept):]...)
	if len(o.last) > 2*lastKept {
		o.last = append([]byte(nil), o.last[len(o.last)-lastKept:]...)
	}
	o.more.Broadcast()
	return n, nil
}

// rest returns the last part, after a line about the omitted part.
func (o *output) rest() []byte {
	after := o.bytes - int64(len(o.first))
	if after == 0 {
		return nil
	}
	last := o.last[max(0, len(o.last)-lastKept):]
	if out := after - int64(len(last)); out > 0 {
		return append(fmt.Appendf(nil, "\n[… %d bytes left out …]\n", out), last...)
	}
	return last
}

// end notifies all followers of the end.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.more.Broadcast()
}

// wake makes followers check whether their reader is gone.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.more.Broadcast()
}

// next waits until the first part has bytes from an offset on, the output has ended, or gone reports true. It returns
// the bytes.
func (o *output) next(from int, gone func() bool) (p []byte, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.first) <= from && !o.over && !gone() {
		o.more.Wait()
	}
	return o.first[min(from, len(o.first)):], o.over || gone()
}
