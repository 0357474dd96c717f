package mcpserver

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// shown is the name of what a client is asked for: to show its user the page with the card.
const shown = "approval"

// asking has a client that can open a page (elicitation in URL mode) send its user to the card, and answer once the
// user has been there. That takes the protocol of 2026-07-28, whose requests say what their client can do, and bring
// back what they were answered before: so any instance can go on with the call, and it stays one.
func (c *caller) asking(call handler) handler {
	return func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState != "" {
			return c.afterwards(req.Params)
		}
		out, err := call(req)
		if err != nil || !opensPages(req) {
			return out, err
		}
		st, ok := out.StructuredContent.(status)
		if !ok || len(st.Waiting) == 0 {
			return out, nil
		}
		w := st.Waiting[0]
		return &mcp.CallToolResult{RequestState: st.RunID, InputRequests: mcp.InputRequestMap{shown: &mcp.ElicitParams{
			Mode: "url", URL: st.Link, ElicitationID: w.ApprovalID,
			Message: fmt.Sprintf("%s waits for your yes. Nothing is done before it.", w.Tool)}}}, nil
	}
}

// opensPages reports whether the client has said with its request that it can open a page for its user.
func opensPages(req *mcp.CallToolRequest) bool {
	can := req.ClientCapabilities()
	return req.ProtocolVersion() >= "2026-07-28" && can != nil && can.Elicitation != nil && can.Elicitation.URL != nil
}

// afterwards answers a call whose user was sent to the card: with what became of it, or that it still waits. Of what
// the client says it is asked only whether there is something to wait for: the user decides on the page.
func (c *caller) afterwards(in *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	if !run.ValidID(in.RequestState) {
		return nil, fault.Invalid("requestState", "this was not given by an earlier answer")
	}
	if r, ok := in.InputResponses[shown].(*mcp.ElicitResult); ok && r.Action == "accept" {
		return c.await(which{RunID: in.RequestState})
	}
	return c.tell(in.RequestState)
}
