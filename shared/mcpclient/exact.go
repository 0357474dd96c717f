package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// The SDK decodes what a server says into Go's any, which rounds 9007199254740993 to 9007199254740992. The readers of
// this file see each message first. They hand the parts that must stay exact to the SDK as texts: the structured
// content of a result as a string of JSON, and in each tool of a list all that the server said of the tool.

// rawMeta is the member of a tool's _meta with all that the server said of the tool.
const rawMeta = "run.countersign/raw"

// maxSDK is how long a message may be for the SDK, in bytes: a text within it may be escaped once more.
const maxSDK = 4 * maxMessage

// exactLines rewrites a program's output, of which each line is a message.
type exactLines struct {
	in   *bufio.Reader
	out  bytes.Buffer
	next func() error // adds to out
	err  error        // behind out
}

// newExactLines returns a reader of the messages of a program.
func newExactLines(in io.Reader) *exactLines {
	e := &exactLines{in: bufio.NewReader(in)}
	e.next = func() error {
		line, err := e.line()
		e.out.Write(exact(line))
		return err
	}
	return e
}

// newExactEvents returns a reader of a stream of events, whose data are messages.
func newExactEvents(in io.Reader) *exactLines {
	e := &exactLines{in: bufio.NewReader(in)}
	var data []byte // of the event that is read, in one or more lines
	e.next = func() error {
		line, err := e.line()
		if part, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimRight(part, "\r")...)
			if len(data) > maxMessage {
				return errTooLarge
			}
			if err == nil {
				return nil
			}
			line = nil
		}
		if len(data) > 0 {
			message := bytes.TrimRight(exact(data), "\n")
			e.out.WriteString("data:" + string(bytes.ReplaceAll(message, []byte("\n"), []byte("\ndata:"))) + "\n")
			data = nil
		}
		e.out.Write(line)
		return err
	}
	return e
}

func (e *exactLines) Read(p []byte) (int, error) {
	for e.out.Len() == 0 && e.err == nil {
		e.err = e.next()
	}
	if e.out.Len() == 0 {
		return 0, e.err
	}
	return e.out.Read(p)
}

// line returns the next line with its end.
func (e *exactLines) line() (line []byte, err error) {
	for {
		part, err := e.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errTooLarge
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// exactBody rewrites a body that is one message.
type exactBody struct {
	in  io.Reader
	out io.Reader // nil: nothing was read yet
}

func (e *exactBody) Read(p []byte) (int, error) {
	if e.out == nil {
		message, err := io.ReadAll(e.in)
		if err != nil {
			return 0, err
		}
		e.out = bytes.NewReader(exact(message))
	}
	return e.out.Read(p)
}

// exact rewrites a message. What is no answer with structured content or tools is returned as it is.
func exact(message []byte) []byte {
	var m, result map[string]json.RawMessage
	if !bytes.Contains(message, []byte(`"structuredContent"`)) && !bytes.Contains(message, []byte(`"tools"`)) ||
		json.Unmarshal(message, &m) != nil || json.Unmarshal(m["result"], &result) != nil {
		return message
	}
	if content := result["structuredContent"]; content != nil && string(content) != "null" {
		result["structuredContent"] = quoted(content)
	}
	var all []json.RawMessage
	if tools := result["tools"]; tools != nil && json.Unmarshal(tools, &all) == nil {
		for i, one := range all {
			all[i] = keeping(one)
		}
		result["tools"] = marshalled(all)
	}
	m["result"] = marshalled(result)
	return append(marshalled(m), '\n')
}

// keeping returns a tool of which the SDK sees what it needs, and which keeps all that the server said of the tool.
func keeping(one json.RawMessage) json.RawMessage {
	var said map[string]json.RawMessage
	_ = json.Unmarshal(one, &said) // define says what is wrong with it
	kept := map[string]json.RawMessage{"name": said["name"], "inputSchema": said["inputSchema"],
		"_meta": marshalled(map[string]json.RawMessage{rawMeta: quoted(one)})}
	var name string
	if json.Unmarshal(said["name"], &name) != nil {
		kept["name"] = json.RawMessage(`""`)
	}
	return marshalled(kept)
}

// quoted returns a value of JSON as a string of JSON.
func quoted(value json.RawMessage) json.RawMessage {
	text, _ := jsontext.AppendQuote(nil, value) // the error is about bytes that are no text, which it has replaced
	return json.RawMessage(text)
}

// marshalled returns the JSON of a map or a list of JSON.
func marshalled(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // each part was decoded before
	}
	return b
}
