package main // go run ./scripts/cookbook/mcp; the server is this program too, started a second time

import (
	"context"
	"fmt"
	"log"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	cs "github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/mcp"
)

type Note struct{ Text string }

func serve() error { // it could be anybody's, in any language
	var notes []sdk.Content
	s := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Keeps a note."},
		func(_ context.Context, _ *sdk.CallToolRequest, n Note) (*sdk.CallToolResult, any, error) {
			notes = append(notes, &sdk.TextContent{Text: n.Text})
			return nil, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "list", Description: "Returns all notes."},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: notes}, nil, nil
		})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

func ask(_ context.Context, a cs.Approval) (cs.Decision, error) {
	fmt.Printf("%s\n%s\n[y] ", a.Preview.Title, a.Args)
	var typed string
	if fmt.Scanln(&typed); typed == "y" {
		return cs.Yes(), nil
	}
	return cs.No("not this one"), nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		log.Fatal(serve())
	}
	config := mcp.Config{Name: "notes", Prefix: "notes_", Reads: []string{"list"}} // list alone needs no approval
	server := must(mcp.Command(context.Background(), config, must(os.Executable()), "serve"))
	defer server.Close()
	agent := must(cs.New(cs.Options{Tools: server.Tools(), Approve: ask}))
	defer agent.Close()
	fmt.Println(must(agent.NewSession().Send(context.Background(), "Note that the demo moved. What do I have?")).Text)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
