package supervisor

import (
	"bytes"
	"io"
	"strings"
)

// longest is the maximum length of the keeper's last line, in bytes: a directory of 4 KiB with each byte as %XX, and
// some numbers.
const longest = 16 << 10

// A Stream parses the keeper's output as it arrives. It skips everything that the login shell prints before the keeper,
// passes on the command's output, and holds back the keeper's last line. A line is the keeper's last line only if
// nothing follows it. The same line in the middle of the output is output.
type Stream struct {
	mark  string
	head  string // start of the last line, and of every line that might be the last
	out   io.Writer
	begun bool
	begin func() // called when the keeper starts to print; may be nil
	held  []byte // before the keeper starts: the end of the output so far; later: a possible last line
}

// NewStream returns a parser for a stream with this mark. The command's output goes to out. After an error of out, the
// stream writes nothing more to it.
func NewStream(mark string, out io.Writer) *Stream {
	return &Stream{mark: mark, head: "\n" + mark + ":", out: out}
}

// Begun reports whether the keeper has started to print.
func (s *Stream) Begun() bool { return s.begun }

// Write parses the next part of the stream. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	if s.longer(p) { // a line that arrives in many small parts is checked only once
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
		s.emit(data[:1]) // its first byte did not begin the last line, so it is output
		data = data[1:]
	}
	s.held = bytes.Clone(data)
	return len(p), nil
}

// longer reports whether the held bytes may be the last line and p only extends it.
func (s *Stream) longer(p []byte) bool {
	line := bytes.TrimPrefix(s.held, []byte{'\r'})
	return s.begun && len(line) > len(s.head) && line[len(line)-1] != '\n' && len(line)+len(p) <= longest &&
		bytes.HasPrefix(line, []byte(s.head)) && bytes.IndexByte(p, '\n') < 0
}

// candidate returns the position in data at which the last line may begin.
func (s *Stream) candidate(data []byte) int {
	at := bytes.Index(data, []byte(s.head))
	if at < 0 { // the end of data may be its beginning
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

// over reports whether data begins with a line that is not the last one.
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

// End ends the stream. It returns the text of the keeper's last line, and whether there was one. Without a last line,
// held bytes are output.
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

// notes parses the keeper's messages on standard error, which say whether the command waits for input.
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
