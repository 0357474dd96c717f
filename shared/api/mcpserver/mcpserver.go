// Package mcpserver is Countersign as a server of MCP: the tools of the assistant and its agents, for the agents of
// other programs. Each call is a run of the loop, with the same approval, the same audit and the same promise to be
// carried out once. Nothing here decides: no tool resolves an approval, and what an agent asks for never rests on what
// its user has allowed in advance.
//
// It is stateless, so that any instance serves any request.
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
	Budget    time.Duration // how long one request may take
	Log       *slog.Logger
}

// instructions tell the model of the other program what is different here.
const instructions = "Countersign acts for its user: a tool that changes something outside only asks for it. Nothing " +
	"is done before the user has approved exactly that, on a page that you cannot reach. Tell the user what waits, " +
	"with its link, and call wait_for_approval to learn what became of it. Do not ask for the same again meanwhile."

// Serve answers one request of the agent as.Via, which acts for as.UID: what it asks for begins as it is said there.
// hold counts what the user holds open while it waits.
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

// caller is one request, and for whom it is.
type caller struct {
	*Server
	as      loop.StartRequest
	hold    func() (leave func(), err error)
	working context.Context // goes on when the client disconnects, as long as the function may run
	request context.Context // ends with the client
}
