package mcp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/mcp"
)

// An agent reads a directory by itself, and writes what it was allowed to write. scripts/cookbook/mcp is a whole
// program that runs without a key and without Node.
func ExampleCommand() {
	ctx := context.Background()
	server, err := mcp.Command(ctx, mcp.Config{Name: "files", Prefix: "files_",
		Reads: []string{"read_text_file", "list_directory", "search_files"},
		Only:  []string{"read_text_file", "list_directory", "search_files", "write_file"}},
		"npx", "@modelcontextprotocol/server-filesystem@2026.8.31", ".")
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	agent, err := countersign.New(countersign.Options{Tools: server.Tools(),
		Approve: func(_ context.Context, a countersign.Approval) (countersign.Decision, error) {
			fmt.Println(a.Preview.Title, string(a.Args))
			return countersign.Later(), nil // it waits: Agent.Approvals lists it
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	res, err := agent.NewSession().Send(ctx, "Write a summary of the notes here to summary.txt.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text)
}
