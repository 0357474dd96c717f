package keeper

import (
	"bytes"
	"io"
	"strings"
)

// longest is the longest line that the keeper ends a stream with: a directory of 4 KiB, each byte as %XX, and numbers.
const longest = 16 << 10

// A Stream is what the keeper prints, read as it comes. Whatever the login shell prints before the keeper is passed
// over, what the command prints goes on, and the keeper's last line is kept back. A line is the last only if nothing
// follows it: one in the midst of the output is only output, whoever printed it.
type Stream struct {
	mark  string
	head  string // what the last line begins with, and each that might be it
	out   io.Writer
	begun bool
	begin func() // is called when the keeper begins to speak; may be nil
	held  []byte // before the beginning: the end of what was printed; then: what may be the last line
}

// NewStream reads the stream of a mark. What the command printed goes to out, which gets nothing more once it fails.
func NewStream(mark string, out io.Writer) *Stream {
	return &Stream{mark: mark, head: "\n" + mark + ":", out: out}
}

// Begun reports whether the keeper has begun to speak.
func (s *Stream) Begun() bool { return s.begun }

// Write takes the next part of the stream. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	if s.longer(p) { // in many small parts, a line is looked at once
		s.held = append(s.held, p...)
		return len(p), nil
	}
	data := append(s.held, p...)
	if !s.begun {
		_, after, ok := bytes.Cut(data, []byte(s.mark+":begin"))
		if line := bytes.IndexByte(after, '\n'); ok && line >= 0 && line <= 1 { // a terminal prints \r\n
			s.begun, data = true, after[line+1:]
			if s.begin != nil {
				s.begin()
			}
		} else {
			keep := len(s.mark) + len(":begin\r")
			s.held = bytes.Clone(data[max(0, len(data)-keep):])
			return len(p), nil
		}
	}
	for {
		at := s.candidate(data)
		s.emit(data[:at])
		data = data[at:]
		if !s.over(data) {
			break
		}
		s.emit(data[:1]) // it is output, as its first byte was not the beginning of the last line
		data = data[1:]
	}
	s.held = bytes.Clone(data)
	return len(p), nil
}

// longer reports whether what is kept back is a line that may be the last, and p no more than a part of it.
func (s *Stream) longer(p []byte) bool {
	line := bytes.TrimPrefix(s.held, []byte{'\r'})
	return s.begun && len(line) > len(s.head) && line[len(line)-1] != '\n' && len(line)+len(p) <= longest &&
		bytes.HasPrefix(line, []byte(s.head)) && bytes.IndexByte(p, '\n') < 0
}

// candidate returns where in data the last line may begin.
func (s *Stream) candidate(data []byte) int {
	at := bytes.Index(data, []byte(s.head))
	if at < 0 { // the end of data may be the beginning of it
		at = bytes.LastIndexByte(data, '\n')
		if at < 0 || len(data)-at >= len(s.head) || !strings.HasPrefix(s.head, string(data[at:])) {
			at = len(data)
		}
	}
	if at > 0 && data[at-1] == '\r' {
		at--
	}
	return at
}

// over reports whether data begins with a line that the stream does not end with.
func (s *Stream) over(data []byte) bool {
	line := bytes.TrimPrefix(data, []byte{'\r'})
	if len(line) <= len(s.mark)+2 || line[0] != '\n' {
		return len(line) > 0 && line[0] != '\n'
	}
	end := bytes.IndexByte(line[1:], '\n')
	return end >= 0 && end+2 < len(line) || end < 0 && len(line) > longest
}

func (s *Stream) emit(p []byte) {
	if len(p) == 0 || s.out == nil {
		return
	}
	if _, err := s.out.Write(p); err != nil {
		s.out = nil
	}
}

// End is called when nothing more comes. It returns what the keeper's last line says. Without one, what was kept back
// is output.
func (s *Stream) End() (string, bool) {
	line := strings.TrimLeft(string(s.held), "\r")
	text, ok := strings.CutPrefix(line, "\n"+s.mark+":")
	if text, whole := strings.CutSuffix(text, "\n"); s.begun && ok && whole {
		s.held = nil
		return strings.TrimRight(text, "\r"), true
	}
	if s.begun {
		s.emit(s.held)
	}
	s.held = nil
	return "", false
}

// notes reads what the keeper says beside the output: whether the command waits for input.
type notes struct {
	mark string
	asks func(bool)
	line []byte
}

func (n *notes) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c != '\n' && len(n.line) < 200:
			n.line = append(n.line, c)
		case c == '\n':
			text, ok := strings.CutPrefix(string(n.line), n.mark+":asks:")
			if ok && n.asks != nil {
				n.asks(text == "1")
			}
			n.line = n.line[:0]
		}
	}
	return len(p), nil
}
