package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// opening lets the agent's program open a page, on which the user does something. It returns what the program reports,
// and counts the pages opened.
func (g *agent) opening(visit func(page *mcp.ElicitParams) (action string)) (opened *int) {
	opened = new(int)
	g.session = g.connects(g.token, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			*opened++
			return &mcp.ElicitResult{Action: visit(req.Params)}, nil
		}})
	return opened
}

// TestMCPElicitURL sends the user to the card by itself, and gets one final answer with the e-mail.
func TestMCPElicitURL(t *testing.T) {
	w := deploy(t)
	g := w.gives("ana", "My editor")
	opened := g.opening(func(page *mcp.ElicitParams) string {
		c := g.card()
		if page.Mode != "url" || !strings.HasPrefix(page.URL, w.Base+"/#/t/") || page.ElicitationID != c.ApprovalID ||
			strings.Contains(page.Message, "CANARY") {
			t.Errorf("the user is sent to %+v", page)
		}
		g.decides(c, "approve_once", http.StatusOK)
		return "accept"
	})
	a := g.calls("gmail_send", bobs)
	if a.Status != "completed" || *opened != 1 || len(w.Google.Messages()) != 1 {
		t.Errorf("%+v, after %d pages and with %d e-mails", a, *opened, len(w.Google.Messages()))
	}
}

// TestMCPElicitWithoutDecision makes programs report anything about the page. A call that was not decided there is not
// executed, and is reported as waiting, without requesting the page again.
func TestMCPElicitWithoutDecision(t *testing.T) {
	for _, said := range []string{"decline", "cancel"} {
		t.Run(said, func(t *testing.T) {
			w := deploy(t)
			g := w.gives("ana", "My editor")
			opened := g.opening(func(*mcp.ElicitParams) string { return said })
			a := g.calls("gmail_send", bobs)
			if a.Status != "awaiting_confirmation" || len(a.Waiting) != 1 || *opened != 1 {
				t.Errorf("%+v, after %d pages", a, *opened)
			}
			g.decides(g.card(), "reject", http.StatusOK)
			if a := g.calls("approval_status", map[string]any{"runId": a.RunID}); a.Status == "awaiting_confirmation" {
				t.Errorf("after the no: %+v", a)
			}
			if n := len(w.Google.Messages()); n != 0 {
				t.Errorf("%d e-mails without a yes", n)
			}
		})
	}
}

// TestMCPElicitForeignState checks that the state that a client sends back must name a run of its own agent.
func TestMCPElicitForeignState(t *testing.T) {
	w := deploy(t)
	mine, other := w.gives("ana", "My editor"), w.gives("ana", "Another")
	asked := mine.calls("gmail_send", bobs)
	for _, state := range []string{asked.RunID, "../x", strings.Repeat("a", 26)} {
		res, err := other.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "gmail_send", Arguments: bobs,
			RequestState: state})
		if err != nil || !res.IsError || res.NeedsInput() {
			t.Errorf("%q: %+v, %v", state, res, err)
		}
	}
	if c := mine.card(); c.RunID != asked.RunID {
		t.Errorf("another card: %+v", c)
	}
}
