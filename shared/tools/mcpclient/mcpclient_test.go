package mcpclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

func TestManyFaultsAtOnce(t *testing.T) {
	for _, c := range []struct {
		cfg  mcpclient.Config
		want []string
	}{
		{mcpclient.Config{}, []string{"name", "a command or a URL"}},
		{mcpclient.Config{Name: "a b", Command: []string{""}, URL: "http://example.com", Timeout: -1,
			Env: []string{"secret"}}, []string{"name", "a command or a URL", "program", "env", "url", "timeout"}},
		{mcpclient.Config{Name: "a", URL: "https://user:password@example.com"}, []string{"url"}},
		{mcpclient.Config{Name: "a", URL: "ftp://example.com"}, []string{"url"}},
		{mcpclient.Config{Name: "a", URL: "https://example.com/mcp"}, nil},
		{mcpclient.Config{Name: "a", URL: "http://localhost:1/mcp"}, nil},
		{mcpclient.Config{Name: "a", Command: []string{"x"}, Env: []string{"A="}}, nil},
	} {
		cl, err := mcpclient.New(c.cfg)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
		for _, want := range c.want {
			if err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v does not speak of %s", err, want)
			}
		}
		if cl != nil {
			if err := cl.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCloseEndsProcessGroup checks that closing kills the program's process group. The program ignores the end of
// its input and has a child.
func TestCloseEndsProcessGroup(t *testing.T) {
	cfg, _ := role(t, "children")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no FIFO can be made here:", err)
	}
	cfg.Env = append(cfg.Env, "FIFO="+fifo)
	alive, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	c := connect(t, cfg)
	tools(t, c, mcpclient.Choice{})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := alive.SetReadDeadline(time.Now().Add(await.Most)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(alive); err != nil { // the pipe ends when no process holds it open
		t.Errorf("a process is left: %v", err)
	}
}

// TestMinimalEnvironment checks that a program gets its configured variables, and only variables without secrets from
// this process.
func TestMinimalEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_PARENT", "x")
	cfg, log := role(t, "env")
	cfg.Env = append(cfg.Env, "GIVEN=x")
	tools(t, connect(t, cfg), mcpclient.Choice{})
	for _, line := range log() {
		name := strings.TrimSpace(line)
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "GIVEN", "LOG", roleVariable}, name) {
			t.Errorf("it has %s", name)
		}
	}
	if all := strings.Join(log(), ""); !strings.Contains(all, "GIVEN\n") || !strings.Contains(all, "PATH\n") {
		t.Errorf("it has %s", all)
	}
}

// TestFloodOverHTTP checks that the session ends if a server sends requests without end and does not accept the HTTP
// requests that contain the answers.
func TestFloodOverHTTP(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	open := atomic.Int32{}
	url, _ := raw(t, func(w http.ResponseWriter, method string, _ int, id json.RawMessage) {
		switch method {
		case "tools/list":
			fmt.Fprintf(w, oneTool, id)
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			for n := 0; ; n++ {
				_, err := fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", n)
				if err != nil {
					return
				}
			}
		default:
			open.Add(1)
			<-release
		}
	})
	act := tools(t, connect(t, mcpclient.Config{URL: url, Deaf: true}), mcpclient.Choice{})["act"]
	if _, err := act.Execute(t.Context(), tool.Call{Args: json.RawMessage(`{}`)}); !tool.IsUnanswered(err) {
		t.Error(err)
	}
	if n := open.Load(); n > 300 {
		t.Errorf("%d requests were open", n)
	}
}

// TestFloodOfRequests checks that the session ends if a server sends more requests than it reads answers.
func TestFloodOfRequests(t *testing.T) {
	cfg, _ := role(t, "flood")
	act := tools(t, connect(t, cfg), mcpclient.Choice{})["act"]
	if _, err := act.Execute(t.Context(), tool.Call{Args: json.RawMessage(`{}`)}); !tool.IsUnanswered(err) {
		t.Error(err)
	}
}

// TestResults checks the limits of the answer that the model reads, and that the answer names the omitted parts.
func TestResults(t *testing.T) {
	size := int64(7)
	long := strings.Repeat("é\x01", 50<<10)
	var links []mcp.Content
	for word := strings.Repeat("\x01é", 1<<10); len(links) < 100; {
		links = append(links, &mcp.ResourceLink{URI: word, Name: word, MIMEType: word, Size: &size})
	}
	nested := any("x")
	for range 200 {
		nested = map[string]any{"a": nested}
	}
	for name, c := range map[string]struct {
		answer mcp.CallToolResult
		want   string // the whole result; "": only its limits are checked
	}{
		"nothing": {mcp.CallToolResult{Content: []mcp.Content{}}, `{}`},
		"texts": {mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:", Text: "b"}}, &mcp.TextContent{Text: "c"}}},
			`{"text":"a\nb\nc"}`},
		"an error": {mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}}},
			`{"isError":true,"text":"no"}`},
		"a sound and a file": {mcp.CallToolResult{Content: []mcp.Content{
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("abc")},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:", MIMEType: "a/b", Blob: []byte("ab")}}}},
			`{"others":[{"type":"audio","mimeType":"audio/wav","bytes":3,"file":"file.txt"},` +
				`{"type":"resource","mimeType":"a/b","uri":"x:","bytes":2,"file":"file.txt"}]}`},
		"a picture": {mcp.CallToolResult{Content: []mcp.Content{
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0")}}},
			`{"others":[{"type":"image","mimeType":"image/png","bytes":9,"file":"file.png"}]}`},
		"a long number": {mcp.CallToolResult{StructuredContent: json.RawMessage(`{"id":1234567890123456789}`),
			Content: []mcp.Content{&mcp.TextContent{Text: `{"id": 1234567890123456789}`}}},
			`{"structured":{"id":1234567890123456789}}`},
		"a list": {mcp.CallToolResult{StructuredContent: []any{1}, Content: []mcp.Content{}}, `{"structured":[1]}`},
		"twice a name": {mcp.CallToolResult{StructuredContent: map[string]any{"a": 2},
			Content: []mcp.Content{&mcp.TextContent{Text: `{"a":1,"a":2}`}}},
			`{"text":"{\"a\":1,\"a\":2}","structured":{"a":2}}`},
		"a long text": {mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: long}}}, ""},
		"many links":  {mcp.CallToolResult{Content: links}, ""},
		"all of it": {mcp.CallToolResult{Content: append(links, &mcp.TextContent{Text: long}),
			StructuredContent: strings.Repeat("a", 29<<10)}, ""},
		"a large structure": {mcp.CallToolResult{StructuredContent: map[string]any{"a": long},
			Content: []mcp.Content{}}, ""},
		"a nested structure": {mcp.CallToolResult{StructuredContent: nested, Content: []mcp.Content{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := server(t, nil)
			s.AddTool(&mcp.Tool{Name: "act", InputSchema: json.RawMessage(object)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return &c.answer, nil })
			got, err := call(t, tools(t, connect(t, mcpclient.Config{URL: url}), mcpclient.Choice{})["act"], `{}`)
			if err != nil || len(got) > 60<<10 || !json.Valid([]byte(got)) || c.want != "" && got != c.want {
				t.Errorf("%d bytes %.300s %v", len(got), got, err)
			}
			if cut := strings.Contains(got, `"truncated":true`); c.want == "" && name != "a nested structure" && !cut {
				t.Error("nothing says that it is cut")
			}
		})
	}
}

// TestHTTPClientOfCaller checks that all requests use the caller's client, and that the client is unchanged.
func TestHTTPClientOfCaller(t *testing.T) {
	s, url := server(t, nil)
	add(s, "act", "", object)
	refuse := errors.New("not here")
	var paths []string
	given := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		paths = append(paths, r.URL.Path)
		return nil, refuse
	})}
	_, _, err := connect(t, mcpclient.Config{URL: url + "/mcp", HTTP: given}).Tools(t.Context(), mcpclient.Choice{})
	if !errors.Is(err, refuse) || len(paths) == 0 || given.CheckRedirect != nil {
		t.Errorf("%v by %v", err, paths)
	}
}

// TestBusyServerRetryAfter checks that an error has the wait that a busy server asks for, whether it refuses a call
// or a session.
func TestBusyServerRetryAfter(t *testing.T) {
	s, url := server(t, nil)
	add(s, "act", "", object)
	busy := ""
	given := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		body := []byte(nil)
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if busy == "" || !bytes.Contains(body, []byte(busy)) {
			return http.DefaultTransport.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}},
			Body: http.NoBody, Request: r}, nil
	})}
	c := connect(t, mcpclient.Config{URL: url + "/mcp", HTTP: given})
	tools, _, err := c.Tools(t.Context(), mcpclient.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	busy = `"tools/call"`
	_, err = call(t, tool.NewSet(tools...)["act"], `{}`)
	if got := fault.As(err).RetryAfter; got != 10*time.Minute || !tool.IsTransient(err) {
		t.Errorf("a call: %v, after %s", err, got)
	}
	busy = "method"
	_, _, err = connect(t, mcpclient.Config{URL: url + "/mcp", HTTP: given}).Tools(t.Context(), mcpclient.Choice{})
	if got := fault.As(err).RetryAfter; got != 10*time.Minute {
		t.Errorf("a session: %v, after %s", err, got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
