// Package mcpserver is Countersign's MCP server. It offers the assistant's tools and Countersign's agents to agents of
// other programs. Each call is a run of the loop, with the same approval, audit and exactly-once promise as any other.
// No tool here can approve anything, and permissions that the user gave in advance do not apply to these agents.
//
// The server is stateless, so any instance can serve any request.
package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/engine/loop"
)

// Server answers requests.
type Server struct {
	Loop      *loop.Loop
	PublicURL string // where users decide
	Release   string
	Budget    time.Duration // maximum time of one request
	Log       *slog.Logger
}

// instructions tell the other program's model how this server differs.
const instructions = "Countersign acts for its user: a tool that changes something outside only asks for it. Nothing " +
	"is done before the user has approved exactly that, on a page that you cannot reach. Tell the user what waits, " +
	"with its link, and call wait_for_approval to learn what became of it. Do not ask for the same again meanwhile."

// Serve answers one request of the agent as.Via, which acts for as.UID. The runs that it starts take their fields from
// as. hold counts the request as held open by the user while it waits.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, as loop.StartRequest,
	hold func() (leave func(), err error)) {
	working, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.Budget)
	defer cancel()
	c := &caller{Server: s, as: as, hold: hold, working: working, request: r.Context()}
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign", Title: "Countersign", Version: s.Release},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}}})
	c.addTools(server)
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}).ServeHTTP(w, r)
}

// caller is one request and the user and agent that it comes from.
type caller struct {
	*Server
	as      loop.StartRequest
	hold    func() (leave func(), err error)
	working context.Context // continues after the client disconnects, within Budget
	request context.Context // ends when the client disconnects
}
