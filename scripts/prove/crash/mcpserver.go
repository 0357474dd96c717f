package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpTool is a tool of the operator's MCP server. It performs its effect on every call, and cannot be queried
// afterwards.
const mcpTool = "desk_write"

var onMCPServer = kind{name: "a server's tool", tool: mcpTool, mode: "draft"}

// mcpServer returns the handler of the MCP server. Its calls have the trial's faults.
func (e *env) mcpServer() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "write", Description: "Writes a note down.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			uid, _, _ := strings.Cut(args.Text, " ")
			key, _ := r.Params.Meta["run.countersign/key"].(string)
			e.keep(uid, key, r.Params.Arguments)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Written."}}}, nil
		})
	all := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true})
	faulty := e.withFaults(all)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			faulty.ServeHTTP(w, r)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// addMCPServer writes a file that names the MCP server, and configures workers with that file.
func (e *env) addMCPServer(file string) error {
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"desk": map[string]any{"type": "http", "url": e.cloud.URL + "/desk"}}})
	if err != nil {
		return err
	}
	e.settings["MCP_SERVERS"] = file
	return os.WriteFile(file, text, 0o600)
}
