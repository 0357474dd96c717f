package mcpclient_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// TestNumbersExact lets a server answer in each form of the protocol. The model receives the exact bytes of the
// structured content, and a limit of 64 bits in a schema is kept.
func TestNumbersExact(t *testing.T) {
	const content = `{"id":9007199254740993,"b":[1.0,1e2,-0.10],"a":18446744073709551615,"s":"\u2028 <&>"}`
	const list = `{"tools":[{"name":"act","inputSchema":{"type":"object","properties":{"n":{"type":"integer",` +
		`"minimum":-9223372036854775808,"maximum":9223372036854775807}}}}]}`
	newline := func(m, end string) string { return strings.ReplaceAll(m, ",", ","+end) }
	forms := map[string]func(message string) string{
		"JSON":                    func(m string) string { return m },
		"JSON, indented":          func(m string) string { return newline(m, "\n  ") },
		"an event":                func(m string) string { return "event: message\ndata: " + m + "\n\n" },
		"an event in CRLF":        func(m string) string { return ": x\r\nid: 1\r\ndata:" + m + "\r\n\r\n" },
		"lines of data":           func(m string) string { return "data: " + newline(m, "\ndata: ") + "\n\n" },
		"an event without an end": func(m string) string { return "data: " + m },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			url, _ := raw(t, func(w http.ResponseWriter, method string, _ int, id json.RawMessage) {
				result := list
				if method == "tools/call" {
					result = `{"content":[],"structuredContent":` + content + `}`
				}
				body := form(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
				if body[0] != '{' {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				fmt.Fprint(w, body)
			})
			act := tools(t, connect(t, mcpclient.Config{URL: url}), mcpclient.Choice{})["act"]
			// from the server to the client
			if schema := string(act.Schema); !strings.Contains(schema, `"maximum":9223372036854775000`) {
				t.Errorf("the schema is %s", schema)
			}
			got, err := call(t, act, `{}`)
			if want := `{"structured":` + content + `}`; err != nil || got != want {
				t.Errorf("%s %v, want %s", got, err, want)
			}
		})
	}
}
