package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/agenttest"
	"github.com/countersign-run/countersign/shared/countersign/mcp"
)

// TestPictureOfServer has a tool of a server return a picture, once as an effect that needs approval, and once as a
// tool that reads. The model gets the picture after the result, and the program reads it from the session.
func TestPictureOfServer(t *testing.T) {
	picture := []byte("\x89PNG\r\n\x1a\npicture")
	s := newStranger(t)
	s.AddTool(&sdk.Tool{Name: "screenshot", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "The page:"},
				&sdk.ImageContent{MIMEType: "image/png", Data: picture}}}, nil
		})
	for name, config := range map[string]mcp.Config{"effect": {}, "read": {Reads: []string{"screenshot"}}} {
		t.Run(name, func(t *testing.T) {
			server := s.connect(t, config)
			defer server.Close()
			m := agenttest.Script(t, agenttest.Call("screenshot", struct{}{}), agenttest.Say("It is a page."))
			a := agenttest.New(t, countersign.Options{Provider: m, Tools: server.Tools(),
				Approve: func(context.Context, countersign.Approval) (countersign.Decision, error) {
					return countersign.Yes(), nil
				}})
			session := a.NewSession()
			res, err := session.Send(t.Context(), "What do you see?")
			if err != nil || len(res.Files) != 1 || res.Files[0].Name != "screenshot-1.png" ||
				res.Files[0].Type != "image/png" {
				t.Fatalf("%+v, %v; want one file screenshot-1.png", res, err)
			}
			got, err := session.Read(t.Context(), res.Files[0])
			if err != nil || string(got) != string(picture) {
				t.Errorf("the picture is read as %q, %v; want %q", got, err, picture)
			}
			sent := string(m.Requests()[1].Contents[3])
			if !strings.Contains(sent, base64.StdEncoding.EncodeToString(picture)) ||
				!strings.Contains(sent, `The result of screenshot has the file \"screenshot-1.png\"`) {
				t.Errorf("after the result the model gets %s; want the picture and its name", sent)
			}
		})
	}
}
