package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// eventStream rewrites a stream of server-sent events in the simplest form: each event is one data field and a blank
// line. It accepts what the WHATWG grammar permits and gateways send: comments, other fields, several lines of data, a
// byte order mark, and each kind of line end. The final [DONE] becomes an object. Data that is not an object, such as a
// ping, is left out. A body of JSON becomes an event for each value: an array (Gemini sends it without alt=sse), one
// whole answer, or an error, also after events. Other text after an event becomes an error. A body without an event,
// such as a page, passes through unchanged.
type eventStream struct {
	io.Closer
	in      *bufio.Reader
	begun   bool                // the first line has been read
	raw     bool                // the rest is not a stream of events
	values  *jsontext.Decoder   // reads the body if it is JSON
	rest    *io.LimitedReader   // what values reads after the first line
	cr      bool                // the last line ended with CR; a LF may follow
	name    string              // of the current event; may be empty
	data    [][]byte            // data of the current event
	sent    bool                // an event was written
	out     bytes.Buffer        // not yet read by the caller
	pending error               // returned to the caller after out
	tidy    func([]byte) []byte // applied to the data of each event
}

func newEventStream(body io.ReadCloser, tidy func([]byte) []byte) *eventStream {
	return &eventStream{Closer: body, in: bufio.NewReader(body), tidy: tidy}
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
			s.json(line)
			return
		}
	}
	switch name, value := field(line); {
	case len(line) == 0:
		s.dispatch()
	case name == "data" && len(value) == 0: // nothing to add; an empty line would end the event
	case name == "data":
		s.data = append(s.data, value)
	case name == "event":
		s.name = string(value)
	case ended(line):
		s.dispatch()
		s.data = [][]byte{line}
	case name == "" && line[0] != ':' && len(s.data) > 0: // JSON in several lines, and only the first is marked as data
		s.data = append(s.data, line)
	case name == "" && line[0] != ':':
		s.foreign(line, err == nil)
		if s.values != nil || s.pending != nil {
			return
		}
	}
	if err == io.EOF {
		s.dispatch() // some services omit the last blank line
	}
	s.pending = err
}

// foreign reads a line that is not part of such a stream. JSON after events is an error. Other text after an event is a
// proxy's: the service did not end the stream.
func (s *eventStream) foreign(line []byte, more bool) {
	switch {
	case line[0] == '{' || line[0] == '[':
		s.json(line)
	case s.sent:
		s.write([]byte(errorEvent))
		s.pending = io.EOF
	default:
		s.dispatch()
		s.raw = true
		s.out.Write(line)
		if more {
			s.out.WriteByte('\n')
		}
	}
}

// json reads the rest of the body as JSON, from the line on.
func (s *eventStream) json(line []byte) {
	s.rest = &io.LimitedReader{R: s.in, N: MaxBody}
	s.values = jsontext.NewDecoder(io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"), s.rest))
}

// value reads one value of a body of JSON: an element of an array, or a whole value. An array that is cut off ends in
// an error, like a lost connection. Text that is not JSON becomes an event that is not JSON either.
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

// dispatch writes the current event: one event for each object in its data.
func (s *eventStream) dispatch() {
	data, name := bytes.TrimSpace(bytes.Join(s.data, []byte("\n"))), s.name
	many := len(s.data) > 1 || len(data) > 0 && data[0] == '['
	s.data, s.name = nil, ""
	switch {
	case ended(data):
		s.write([]byte(doneEvent))
	case len(data) > 0 && name == "error" && data[0] != '{' && data[0] != '[': // a message in words
		s.write([]byte(errorEvent))
	case many:
		for _, one := range objects(data) {
			s.write(one)
		}
	case len(data) > 0 && data[0] == '{':
		s.write(data)
	}
}

func (s *eventStream) write(data []byte) {
	s.sent = true
	s.out.WriteString("data: ")
	s.out.Write(s.tidy(data))
	s.out.WriteString("\n\n")
}

// Events that this package puts in place of events without JSON.
const (
	doneEvent  = `{"done":true}`
	errorEvent = `{"error":{"code":500}}`
)

// ended reports whether the data is the [DONE] that ends a stream.
func ended(data []byte) bool {
	return strings.EqualFold(string(bytes.Trim(data, `" `)), "[DONE]")
}

// objects returns the values in the data, and the elements of an array of objects. Some gateways omit the blank line
// between two events. Data that is not JSON is returned as it is.
func objects(data []byte) (all [][]byte) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		value, err := dec.ReadValue()
		switch list := []jsontext.Value(nil); {
		case err == io.EOF:
			return all
		case err != nil:
			return [][]byte{data}
		case value.Kind() == '[' && json.Unmarshal(value, &list) == nil && len(list) > 0 && list[0].Kind() == '{':
			for _, one := range list {
				all = append(all, one)
			}
		default:
			all = append(all, bytes.Clone(value))
		}
	}
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
