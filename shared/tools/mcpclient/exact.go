package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The SDK decodes messages into any, which rounds 9007199254740993 to 9007199254740992. The readers in this file see
// each message first. They pass the parts that must stay exact to the SDK as strings: the structured content of a
// result, and the complete definition of each listed tool.

// rawMeta is the _meta field of a tool that holds the tool's complete definition.
const rawMeta = "run.countersign/raw"

// maxSDK is the maximum size of a message for the SDK, in bytes. It is larger than maxMessage, because strings in a
// message may be escaped once more.
const maxSDK = 4 * maxMessage

// exactLines rewrites a program's output, in which each line is a message.
type exactLines struct {
	in   *bufio.Reader
	out  bytes.Buffer
	next func() error // adds to out
	err  error        // comes after out
}

// newExactLines returns a reader of a program's messages.
func newExactLines(in io.Reader) *exactLines {
	e := &exactLines{in: bufio.NewReader(in)}
	e.next = func() error {
		line, err := e.line()
		e.out.Write(exact(line))
		return err
	}
	return e
}

// newExactEvents returns a reader of an event stream whose data fields are messages.
func newExactEvents(in io.Reader) *exactLines {
	e := &exactLines{in: bufio.NewReader(in)}
	var data []byte // of the current event, from one or more lines
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

// line returns the next line with its line end.
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

// rewritten are the fields of a result that are rewritten.
var rewritten = []string{`"structuredContent"`, `"content"`, `"toolResult"`, `"tools"`}

// exact rewrites a message. A message without content or tools is returned unchanged.
func exact(message []byte) []byte {
	var m, result map[string]json.RawMessage
	has := func(field string) bool { return bytes.Contains(message, []byte(field)) }
	if !slices.ContainsFunc(rewritten, has) || json.Unmarshal(message, &m) != nil ||
		json.Unmarshal(m["result"], &result) != nil {
		return message
	}
	acceptable(result)
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

// keeping returns a tool with the fields that the SDK needs. The complete definition is in its rawMeta field.
func keeping(one json.RawMessage) json.RawMessage {
	var said map[string]json.RawMessage
	_ = json.Unmarshal(one, &said) // define reports any mistake in it
	kept := map[string]json.RawMessage{"name": said["name"], "inputSchema": json.RawMessage(`{"type":"object"}`),
		"_meta": marshalled(map[string]json.RawMessage{rawMeta: quoted(one)})}
	var name string
	if json.Unmarshal(said["name"], &name) != nil {
		kept["name"] = json.RawMessage(`""`)
	}
	return marshalled(kept)
}

// quoted returns a JSON value as a JSON string.
func quoted(value json.RawMessage) json.RawMessage {
	text, _ := jsontext.AppendQuote(nil, value) // the error is about invalid UTF-8, which is replaced
	return json.RawMessage(text)
}

// marshalled returns the JSON of a map or a list of JSON values.
func marshalled(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // each part was decoded before
	}
	return b
}
