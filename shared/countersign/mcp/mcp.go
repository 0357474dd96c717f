// Package mcp gives agents of package countersign the tools of servers that speak the Model Context Protocol.
//
// A server is a stranger. Each of its tools has an effect, and waits for an approval of exactly its arguments, unless
// [Config].Reads says that it only reads. The server's hints can only make a tool stricter. The server's description
// and schema of a tool are part of the approval: if a tool changes before the approval, the call asks again, and a
// reading tool that changes is no longer called. With Options.Effects [countersign.AutoApprove] no call asks, even if
// the server's description has changed. Results are text from strangers, and are marked so for the model.
//
// A call is sent once. A dead session is replaced, at most once for each call. If the answer to an effect is lost, its
// outcome is unknown, and an approval that is a Review asks the user.
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// Config says how to reach a server and which of its tools to use. Tool names are the server's names.
type Config struct {
	// Name is shown to people on an approval. It is a letter, followed by up to 31 letters, digits, underscores and
	// hyphens. It is required.
	Name   string
	Prefix string   // a prefix for each tool's name, such as "files_"
	Reads  []string // tools that you declare read-only; they run at once, whatever the server says
	Only   []string // the tools to use; nil: all, up to 100
	Deny   []string // tools to leave out

	Dir string // for [Command]: the program's working directory; empty: this process's
	// for [Command]: NAME=value, in addition to PATH, HOME, LANG and TMPDIR; the program gets no other variables
	Env []string

	Header http.Header // for [HTTP]: headers of each request, such as Authorization
	// for [HTTP]: sends the requests; it follows no redirect; nil: a client with the default transport
	Client *http.Client

	Timeout time.Duration // for connecting and listing the tools; 0: 30 s. Options.ToolTimeout applies to calls
	Logger  *slog.Logger  // nil: no log
	Changed func()        // called when the server announces that its tools have changed; optional
}

// Server is a connection to a server. It is safe for concurrent use, and its tools may serve several agents.
type Server struct {
	client  *mcpclient.Client
	tools   []*countersign.Tool
	refused map[string]error
}

// Command starts a program that speaks MCP on its standard input and output, and lists its tools. It returns an error
// if the program does not answer in time, or lacks a tool that the configuration names. If there are more than 100
// tools, the first 100 are used.
func Command(ctx context.Context, c Config, program string, args ...string) (*Server, error) {
	return connect(ctx, c, mcpclient.Config{Command: append([]string{program}, args...)})
}

// HTTP connects to a streamable HTTP endpoint, with https or on this machine, and lists its tools. It returns the
// same errors as [Command].
func HTTP(ctx context.Context, c Config, url string) (*Server, error) {
	return connect(ctx, c, mcpclient.Config{URL: url})
}

func connect(ctx context.Context, c Config, to mcpclient.Config) (*Server, error) {
	to.Name, to.Dir, to.Env, to.Header, to.HTTP = c.Name, c.Dir, c.Env, c.Header, c.Client
	to.Timeout, to.Log, to.Changed = c.Timeout, c.Logger, c.Changed
	client, err := mcpclient.New(to)
	if err != nil {
		return nil, err
	}
	tools, refusals, err := client.Tools(ctx, mcpclient.Choice{Prefix: c.Prefix, Reads: c.Reads, Only: c.Only,
		Deny: c.Deny})
	if err != nil {
		_ = client.Close() // Close never fails
		return nil, fmt.Errorf("the tools of the MCP server %s: %w", c.Name, err)
	}
	s := &Server{client: client, refused: map[string]error{}}
	for _, t := range tools {
		s.tools = append(s.tools, bridge.NewTool(bridge.Tool{Tool: t}).(*countersign.Tool))
	}
	for _, r := range refusals {
		s.refused[r.Tool] = r.Why
		if c.Logger != nil {
			c.Logger.WarnContext(ctx, "a tool of an MCP server cannot be used", "server", c.Name, "tool", r.Tool,
				"error", r.Why)
		}
	}
	return s, nil
}

// Tools returns the tools for Options.Tools: those that the server had when the connection was made.
func (s *Server) Tools() []*countersign.Tool { return append([]*countersign.Tool(nil), s.tools...) }

// Refused returns the reasons why tools of the server are not used, each with the tool's name in quotes: two
// different tools with one name, a schema above its limits, more than 100 tools.
func (s *Server) Refused() map[string]error { return maps.Clone(s.refused) }

// Close ends the connection. It asks a program to end, and then kills it with all processes that it started. Close
// the agents first; otherwise running calls end without an answer.
func (s *Server) Close() error { return s.client.Close() }
