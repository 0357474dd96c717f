package mcpclient_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/schema"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// FuzzServer lets a server list and answer anything. Every tool is within its limits. Every answer is a result within
// its limits or an error, and an error says that nothing was done only if the server refused the call.
func FuzzServer(f *testing.F) {
	for _, s := range []struct{ list, answer string }{
		{`{"tools":[{"name":"act","description":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}]}`,
			`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}`},
		{`{"tools":[{"name":"a","inputSchema":{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}}}}]}`, `null`},
		{`{"tools":[{"name":"a","inputSchema":true,"annotations":{"destructiveHint":true}}],"nextCursor":"x"}`,
			`{"content":[{"type":"image","data":"AAAA","mimeType":"a/b"},{"type":"resource","resource":{"uri":"x:"}}]}`},
		{`{"tools":[null,{}]}`, `{"content":[{"type":"resource_link","uri":"x:","size":9}],"isError":true}`},
		{`[]`, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`},
	} {
		f.Add(s.list, s.answer)
	}
	var list, answer string
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return reply(r, list, answer)
	})}
	c, err := mcpclient.New(mcpclient.Config{Name: "fuzz", URL: "https://mcp.example.com", HTTP: client, Deaf: true})
	cleanup.Close(f, c, err)
	f.Fuzz(func(t *testing.T, l, a string) {
		list, answer = l, a
		tools, refusals, err := c.Tools(t.Context(), mcpclient.Choice{Prefix: "p_"})
		if err != nil {
			return
		}
		for _, r := range refusals {
			if len(r.Tool) > 500 || r.Why == nil {
				t.Errorf("%+v", r)
			}
		}
		for _, tl := range tools {
			if !tl.SideEffect || !tl.Untrusted || !tl.Placed() || tl.Approval != tool.Required ||
				len(tl.Schema) > 4*schema.MaxBytes || !json.Valid(tl.Schema) || !strings.HasPrefix(tl.Name, "p_") {
				t.Errorf("%+v", tl.Spec)
			}
			if _, err := tl.Preview(json.RawMessage(`{"a":"b"}`)); err != nil {
				t.Error(err)
			}
			if _, err := tl.Place(t.Context(), tool.Scope{UID: "u"}); err != nil {
				t.Error(err)
			}
		}
		if len(tools) == 0 {
			return
		}
		res, err := tools[0].Execute(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
		switch {
		case err == nil && (len(res) > 60<<10 || !json.Valid(res)):
			t.Errorf("%d bytes %.200s", len(res), res)
		case err != nil && !tool.IsUnanswered(err) && !strings.Contains(a, "inputRequests"):
			t.Errorf("%s: %v", a, err)
		}
	})
}

// reply answers a request as a server with this list and this answer.
func reply(r *http.Request, list, answer string) (*http.Response, error) {
	var in struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}}
	result := ""
	switch in.Method {
	case "server/discover":
		res.StatusCode = http.StatusNotFound
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
	case "tools/list":
		result = list
	case "tools/call":
		result = answer
	default:
		res.StatusCode = http.StatusAccepted
	}
	res.Body = io.NopCloser(bytes.NewReader(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, result)))
	return res, nil
}
