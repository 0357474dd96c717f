// Package mcp gives agents of package countersign the tools of servers that speak the Model Context Protocol.
//
// A server is a stranger. Each of its tools has an effect, and waits for an approval of exactly its arguments, unless
// [Config].Reads says that it only reads. The server's hints can only make a tool stricter. The server's description
// and schema of a tool are part of the approval: if a tool changes before the yes, the call asks again, and a reading
// tool that changes is no longer called. With Options.Effects [countersign.AutoApprove] no call asks, even if the
// server's description has changed. Results are text from strangers, and are marked so for the model.
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

// Config says which tools of a server are used, and how it is reached. Names of tools are the server's.
type Config struct {
	// Name is what people read on an approval: a letter, then up to 31 letters, digits, underscores and hyphens.
	// Needed.
	Name   string
	Prefix string   // before each tool's name, such as "files_"
	Reads  []string // tools that change nothing and run at once: your word, not the server's
	Only   []string // the tools that are used; nil: all, but no more than 100
	Deny   []string // tools that are left out

	Dir string   // of [Command]: where the program runs; empty: where this one does
	Env []string // of [Command]: NAME=value, all that it gets beside PATH, HOME, LANG and TMPDIR

	Header http.Header  // of [HTTP]: sent with each request, such as Authorization
	Client *http.Client // of [HTTP]: sends the requests, but follows no redirect; nil: one with the default transport

	Timeout time.Duration // to connect and to list the tools; 0: 30 s. For a call Options.ToolTimeout counts
	Logger  *slog.Logger  // nil: none
	Changed func()        // called when the server says that its tools have changed; optional
}

// Server is a connection to a server. It is safe for concurrent use, and its tools may serve several agents.
type Server struct {
	client  *mcpclient.Client
	tools   []*countersign.Tool
	refused map[string]error
}

// Command starts a program that speaks over its standard input and output, and lists its tools. It is an error if the
// program does not answer in time, or lacks a tool that the configuration names. Of more than 100 tools the first are
// used.
func Command(ctx context.Context, c Config, program string, args ...string) (*Server, error) {
	return connect(ctx, c, mcpclient.Config{Command: append([]string{program}, args...)})
}

// HTTP connects to a streamable HTTP endpoint, of https or on this machine, and lists its tools. Errors are those of
// [Command].
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
		_ = client.Close() // it always closes
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

// Tools returns the tools, for Options.Tools. They are those that the server had when it was connected to.
func (s *Server) Tools() []*countersign.Tool { return append([]*countersign.Tool(nil), s.tools...) }

// Refused says why tools of the server are not among its tools, by their names in quotes: two different tools of one
// name, a schema beyond its bounds, a tool behind the first 100.
func (s *Server) Refused() map[string]error { return maps.Clone(s.refused) }

// Close ends the connection. A program is asked to end, and then killed with all that it has started. It is called
// after the agents' Close, or calls under way end without an answer.
func (s *Server) Close() error { return s.client.Close() }
