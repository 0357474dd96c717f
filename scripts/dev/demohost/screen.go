package demohost

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

// screen is the output of a shell, and its viewers.
type screen struct {
	mu      sync.Mutex
	kept    []byte
	viewers []io.Writer
}

// maxScrollback is the amount of output that is kept for a viewer who attaches again.
const maxScrollback = 256 << 10

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, p...)
	if len(s.kept) > 2*maxScrollback {
		s.kept = bytes.Clone(s.kept[len(s.kept)-maxScrollback:])
	}
	s.viewers = slices.DeleteFunc(s.viewers, func(v io.Writer) bool { return passOn(v, p) != nil })
	return len(p), nil
}

func passOn(v io.Writer, p []byte) error {
	_, err := v.Write(p)
	return err
}

// show sends the earlier and the later output to a viewer.
func (s *screen) show(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept[max(0, len(s.kept)-maxScrollback):]
	if at := bytes.IndexByte(kept, '\n'); len(s.kept) > maxScrollback && at >= 0 {
		kept = kept[at+1:]
	}
	if len(kept) == 0 || passOn(w, kept) == nil {
		s.viewers = append(s.viewers, w)
	}
}

// leave detaches a viewer.
func (s *screen) leave(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers = slices.DeleteFunc(s.viewers, func(v io.Writer) bool { return v == w })
}

func (s *screen) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.viewers) == 0
}
