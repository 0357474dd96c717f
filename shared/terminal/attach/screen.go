package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// The text messages to a person's terminal. Output is sent between them, as binary messages.
type (
	ready struct {
		Type  string `json:"type"`
		Keeps bool   `json:"keeps"` // the shell outlives the socket
	}
	agentState struct {
		Type     string `json:"type"`
		RunID    string `json:"runId"`
		ActionID string `json:"actionId"`
		State    string `json:"state"`
	}
	closed struct {
		Type   string `json:"type"`
		Reason Reason `json:"reason"`
	}
)

var errEnded = errors.New("attach: the socket is closed")

// screen is the queue of messages to send, in order. Writes wait while the queue is too long.
type screen struct {
	mu      sync.Mutex
	queue   []message
	unsent  int // bytes of output in the queue
	over    bool
	half    bool          // the agent's command has printed an incomplete line
	cut     bool          // the shell has printed between the parts of that line
	changed chan struct{} // closed when any of this changes
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

// change wakes all waiters. The caller holds the lock.
func (s *screen) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// printer writes to the screen for the person's shell or for the agent's command.
type printer struct {
	*screen
	shell bool
}

// Write sends output. It waits while the reader is slow.
func (s printer) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		piece := rest[:min(len(rest), maxFrame-len(lineEnds))]
		if err := s.add(piece); err != nil {
			return len(b) - len(rest), err
		}
		rest = rest[len(piece):]
	}
	return len(b), nil
}

func (s printer) add(piece []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.over && s.unsent > 0 && s.unsent+len(piece) > maxUnsent {
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	if s.over {
		return errEnded
	}
	piece = s.apart(piece)
	s.unsent += len(piece)
	if n := len(s.queue); n > 0 && s.queue[n-1].kind == websocket.MessageBinary &&
		len(s.queue[n-1].data)+len(piece) <= maxFrame {
		s.queue[n-1].data = append(s.queue[n-1].data, piece...)
	} else {
		s.queue = append(s.queue, message{websocket.MessageBinary, append([]byte(nil), piece...)})
	}
	s.change()
	return nil
}

// apart puts output of the shell on lines of its own if it arrives in the middle of a command's line, and then the rest
// of that line. A shell that is resized clears the line of its prompt and redraws it at the cursor, wherever that is.
// The caller holds the lock.
func (s printer) apart(piece []byte) []byte {
	between := s.half && s.shell || s.cut && !s.shell && !bytes.HasPrefix(bytes.TrimLeft(piece, "\r"), []byte{'\n'})
	s.half, s.cut = !s.shell && piece[len(piece)-1] != '\n', s.shell && (s.half || s.cut)
	if between {
		return append([]byte(lineEnds), piece...)
	}
	return piece
}

// ended records that the command has ended, so that output of the shell is no longer separated from it.
func (s *screen) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.half, s.cut = false, false
}

// tell sends a text message after the output that came before it.
func (s *screen) tell(v any) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return // every type that is sent can be encoded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.queue = append(s.queue, message{websocket.MessageText, b})
	s.change()
}

// finish refuses further writes, sends the queued ones, and then the reason.
func (s *screen) finish(why Reason) {
	if why != reasonGone {
		s.tell(closed{"closed", why})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == reasonGone {
		s.queue = nil
	}
	s.over = true
	s.change()
}

// send sends messages until the screen is finished and the queue is empty, or until the reader reads nothing for too
// long.
func (s *screen) send(c *websocket.Conn, within time.Duration, end func(Reason)) {
	for {
		m, more := s.next()
		if !more {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		err := c.Write(ctx, m.kind, m.data)
		cancel()
		if err != nil {
			end(ReasonSlow)
			s.finish(reasonGone)
			return
		}
	}
}

// next waits for the next message. Its bytes count as sent once it is taken.
func (s *screen) next() (message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 {
		if s.over {
			return message{}, false
		}
		changed := s.changed
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	m := s.queue[0]
	s.queue = s.queue[1:]
	if m.kind == websocket.MessageBinary {
		s.unsent -= len(m.data)
	}
	s.change()
	return m, true
}

// keys are bytes that a person has typed and the host has not read yet.
type keys struct {
	mu      sync.Mutex
	typed   []byte
	over    bool
	changed chan struct{}

	answers int // the line ends on their way to the host. The agent's lock guards it.
}

func newKeys() *keys { return &keys{changed: make(chan struct{})} }

func (k *keys) change() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// put adds keys. It waits while there are too many, until ctx ends.
func (k *keys) put(ctx context.Context, b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.over && len(k.typed) > 0 && len(k.typed)+len(b) > maxTyped {
		changed := k.changed
		k.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		k.mu.Lock()
		if ctx.Err() != nil {
			return
		}
	}
	if k.over {
		return
	}
	k.typed = append(k.typed, b...)
	k.change()
}

// drop removes the keys that nothing has read, and returns them.
func (k *keys) drop() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	dropped := k.typed
	k.typed = nil
	k.change()
	return dropped
}

// Read returns the available keys, and waits for the first one.
func (k *keys) Read(b []byte) (int, error) { return k.read(context.Background(), b) }

// reader reads keys until ctx ends.
type reader struct {
	*keys
	ctx context.Context
}

func (r reader) Read(b []byte) (int, error) { return r.read(r.ctx, b) }

func (k *keys) read(ctx context.Context, b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.typed) == 0 || k.over || ctx.Err() != nil {
		if k.over || ctx.Err() != nil {
			return 0, io.EOF
		}
		changed := k.changed
		k.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		k.mu.Lock()
	}
	n := copy(b, k.typed)
	if k.typed = k.typed[n:]; len(k.typed) == 0 {
		k.typed = nil
	}
	k.change()
	return n, nil
}

// close drops unread keys.
func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.typed = nil
	k.change()
}
