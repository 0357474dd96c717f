package gemini

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEventStream(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"as it should be":       {"data: {\"a\":1}\n\ndata: {\"b\":2}\n\n", "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n"},
		"comments":              {": ping\n\ndata: {1:1}\n: inside\n\n:\n\n", "data: {1:1}\n\n"},
		"other fields":          {"event: message\nid: 7\nretry: 9\nx-new: y\ndata: {1:1}\n\n", "data: {1:1}\n\n"},
		"several lines of data": {"data: {\"a\":\ndata: 1}\n\n", "data: {\"a\":\n1}\n\n"},
		"data of several lines": {"data: {\r\n  \"a\": 1\r\n}\r\n\r\n", "data: {\n  \"a\": 1\n}\n\n"},
		"no space":              {"data:{\"a\":1}\n\n", "data: {\"a\":1}\n\n"},
		"a byte order mark":     {"\ufeffdata: {1:1}\n\n", "data: {1:1}\n\n"},
		"CR LF":                 {"data: {1:1}\r\n\r\ndata: {2:2}\r\n\r\n", "data: {1:1}\n\ndata: {2:2}\n\n"},
		"CR":                    {"data: {1:1}\r\rdata: {2:2}\r\r", "data: {1:1}\n\ndata: {2:2}\n\n"},
		"done":                  {"data: {1:1}\n\ndata: [DONE]\n\n", "data: {1:1}\n\ndata: {\"done\":true}\n\n"},
		"a blank line of data":  {"data: {\ndata:\ndata: }\n\n", "data: {\n}\n\n"},
		"no last blank line":    {"data: {1:1}\n\ndata: {2:2}", "data: {1:1}\n\ndata: {2:2}\n\n"},
		"blank lines first":     {"\n\r\ndata: {1:1}\n\n", "data: {1:1}\n\n"},
		"events without data":   {"event: ping\n\ndata\n\ndata: {1:1}\n\n", "data: {1:1}\n\n"},
		"a page":                {"<html>\n<p>no</p>\r\n</html>", "<html>\n<p>no</p>\r\n</html>"},
		"an error in JSON":      {"{\n\"error\":{\"code\":503}}\n", "data: { \"error\":{\"code\":503}}\n\n"},
		"an array": {"\ufeff\n[{\"a\":\n1}\r\n,\n{\"b\":2}\n]\n",
			"data: {\"a\": 1}\n\ndata: {\"b\":2}\n\n"},
		"lines of JSON":        {"{\"a\":1}\n{\"b\":2}", "data: {\"a\":1}\n\ndata: {\"b\":2}\n\n"},
		"nearly JSON":          {"[{\"a\":1},oops]", "data: {\"a\":1}\n\ndata: {\n\n"},
		"an error behind data": {"data: {1:1}\n\n{\"error\":{}}", "data: {1:1}\n\ndata: {\"error\":{}}\n\n"},
		"a list behind data":   {"data: {1:1}\n\n[{\"error\":{}}]", "data: {1:1}\n\ndata: {\"error\":{}}\n\n"},
		"words behind data": {"data: {1:1}\n\nupstream reset",
			"data: {1:1}\n\ndata: {\"error\":{\"code\":500}}\n\n"},
		"nothing": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				got, err := io.ReadAll(newEventStream(io.NopCloser(in), asIs))
				if string(got) != c.want || err != nil {
					t.Errorf("%q, %v; want %q", got, err, c.want)
				}
			}
		})
	}
	cut := io.NopCloser(strings.NewReader(`[{"a":1},{"b":`))
	if got, err := io.ReadAll(newEventStream(cut, asIs)); string(got) != "data: {\"a\":1}\n\n" || err == nil {
		t.Errorf("%q, %v; want an error behind the first element", got, err)
	}
	broken := io.MultiReader(strings.NewReader("data: {1:1}\n\ndata: {2:2}"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, err := io.ReadAll(newEventStream(io.NopCloser(broken), asIs)); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v; want the error of the body", got, err)
	}
}

func asIs(data []byte) []byte { return data }
