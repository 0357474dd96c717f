package mcpserver

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// shown is the name of the request that asks the client to open the card's page.
const shown = "approval"

// asking wraps a handler for clients that can open a page (elicitation in URL mode). Such a client sends its user to
// the card, and its call returns after the user has been there. This needs protocol 2026-07-28, whose requests carry
// the client's capabilities and the state of the earlier answer. Therefore any instance can continue the call, and it
// stays one call.
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
			Message: fmt.Sprintf("%s waits for your approval. Nothing is done before that.", w.Tool)}}}, nil
	}
}

// opensPages reports whether the request announces that the client can open a page.
func opensPages(req *mcp.CallToolRequest) bool {
	can := req.ClientCapabilities()
	return req.ProtocolVersion() >= "2026-07-28" && can != nil && can.Elicitation != nil && can.Elicitation.URL != nil
}

// afterwards answers a call whose user was sent to the card: with the outcome, or that the call still waits. The
// client's report only determines whether to wait. The decision itself comes from the page.
func (c *caller) afterwards(in *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	if !run.ValidID(in.RequestState) {
		return nil, fault.Invalid("requestState", "not a requestState from an earlier response")
	}
	if r, ok := in.InputResponses[shown].(*mcp.ElicitResult); ok && r.Action == "accept" {
		return c.await(which{RunID: in.RequestState})
	}
	return c.tell(in.RequestState)
}
