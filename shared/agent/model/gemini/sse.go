package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// eventStream rewrites a stream of server-sent events in the simplest form: each event is one data field and a blank
// line. It accepts what the WHATWG grammar permits and gateways send: comments, other fields, several lines of data, a
// byte order mark, each kind of line end, and a final [DONE]. A body of JSON becomes an
// event for each value: a JSON array, which Gemini sends without alt=sse, one whole answer, or an error. From the first
// line that is not part of such a stream, such as a page, the body passes through unchanged.
type eventStream struct {
	io.Closer
	in      *bufio.Reader
	begun   bool              // the first line has been read
	raw     bool              // the rest is not a stream of events
	values  *jsontext.Decoder // reads the body if it is JSON
	rest    *io.LimitedReader // what values reads after the first line
	cr      bool              // the last line ended with CR; a LF may follow
	data    [][]byte          // data of the current event
	out     bytes.Buffer      // not yet read by the caller
	pending error             // returned to the caller after out
}

func newEventStream(body io.ReadCloser) *eventStream {
	return &eventStream{Closer: body, in: bufio.NewReader(body)}
}

func (s *eventStream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 && s.pending == nil && !s.raw {
		if s.values != nil {
			s.value()
		} else {
			s.step()
		}
	}
	if s.out.Len() == 0 && s.raw {
		return s.in.Read(p)
	}
	if s.out.Len() > 0 {
		return s.out.Read(p)
	}
	return 0, s.pending
}

// step reads one line.
func (s *eventStream) step() {
	line, err := s.line()
	if !s.begun {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if s.begun = len(line) > 0; s.begun && (line[0] == '[' || line[0] == '{') {
			s.rest = &io.LimitedReader{R: s.in, N: MaxBody}
			s.values = jsontext.NewDecoder(io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), s.rest))
			return
		}
	}
	switch name, value := field(line); {
	case len(line) == 0:
		s.dispatch()
	case name == "data":
		s.data = append(s.data, value)
	case name == "" && line[0] != ':' && len(s.data) > 0: // JSON in several lines, and only the first is marked as data
		s.data = append(s.data, line)
	case name == "" && line[0] != ':': // not a line of such a stream
		s.dispatch()
		s.raw = true
		s.out.Write(line)
		if err == nil {
			s.out.WriteByte('\n')
		}
	}
	if err == io.EOF {
		s.dispatch() // some services omit the last blank line
	}
	s.pending = err
}

// value reads one value of a body of JSON: an element of an array, or a whole value. An array that is cut off ends in
// an error, like a connection that broke off. Text that is not JSON becomes an event that is not JSON either.
func (s *eventStream) value() {
	kind := s.values.PeekKind()
	if kind == '[' && s.values.StackDepth() == 0 || kind == ']' {
		if _, err := s.values.ReadToken(); err == nil {
			return
		}
	}
	value, err := s.values.ReadValue()
	switch {
	case err == nil:
		s.data = [][]byte{bytes.ReplaceAll(value, []byte("\n"), []byte(" "))}
		s.dispatch()
	case s.rest.N == 0:
		s.pending = errTooLarge
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		s.pending = err
	default:
		s.data = [][]byte{[]byte("{")}
		s.dispatch()
		s.pending = io.EOF
	}
}

// dispatch writes the current event if it has data.
func (s *eventStream) dispatch() {
	data := bytes.Join(s.data, []byte("\n"))
	if s.data = nil; len(data) == 0 || string(bytes.TrimSpace(data)) == "[DONE]" {
		return
	}
	s.out.WriteString("data: ")
	s.out.Write(data)
	s.out.WriteString("\n\n")
}

// line returns the next line without its end, which is LF, CR LF or CR.
func (s *eventStream) line() (line []byte, err error) {
	for {
		b, err := s.in.ReadByte()
		switch {
		case err != nil:
			return line, err
		case b == '\n' && s.cr:
			s.cr = false
			continue
		case b == '\n':
			return line, nil
		case b == '\r':
			s.cr = true
			return line, nil
		case len(line) >= MaxBody:
			return line, errTooLarge
		}
		s.cr = false
		line = append(line, b)
	}
}

// field returns the name and the value of a line. The name is empty if the line is not part of a stream of events.
func field(line []byte) (name string, value []byte) {
	before, value, _ := bytes.Cut(line, []byte(":"))
	if len(before) == 0 || bytes.ContainsFunc(before, func(r rune) bool { return !letter(r) }) {
		return "", nil
	}
	return string(before), bytes.TrimPrefix(value, []byte(" "))
}

func letter(r rune) bool { return r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
