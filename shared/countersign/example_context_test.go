package countersign_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/countersign-run/countersign/shared/countersign"
)

// Instructions come from a file of the directory, if it is there.
func ExampleFS() {
	m := newScript(say("v1.2.0 is out."))
	agent, err := countersign.New(countersign.Options{
		InstructionsFunc: func(_ context.Context, s *countersign.SessionContext) (string, error) {
			notes, err := s.FS.ReadFile("AGENT.md")
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return "You release software.\n" + string(notes), err
		},
		Dir:      "testdata/project",
		Provider: m,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.NewSession().Send(context.Background(), "Release it."); err != nil {
		log.Fatal(err)
	}
	fmt.Print(m.Requests()[0].System)
	// Output:
	// You release software.
	// Tag a release only after the tests have passed.
}

// A tool runs the commands that the program allows, whatever the model asks for.
func ExampleShell() {
	type command struct {
		Line string `json:"line"`
	}
	shell := countersign.DefineTool(
		countersign.ToolConfig{Name: "look", Description: "Runs a command.", SendErrorsToModel: true},
		func(ctx context.Context, s *countersign.SessionContext, in command) (string, error) {
			res, err := s.Shell.Exec(ctx, in.Line, countersign.ShellOptions{})
			fmt.Printf("%s: %q %v\n", in.Line, res.Stdout, err)
			return res.Stdout, err
		})
	agent, err := countersign.New(countersign.Options{
		Tools:    []*countersign.Tool{shell},
		Commands: []string{"echo", "sort"},
		Provider: newScript(
			call("look", map[string]any{"line": "echo b a | sort && echo 'the end'"}),
			call("look", map[string]any{"line": "echo a; rm b"}),
			say("Done.")),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.NewSession().Send(context.Background(), "Look around."); err != nil {
		log.Fatal(err)
	}
	// Output:
	// echo b a | sort && echo 'the end': "b a\nthe end\n" <nil>
	// echo a; rm b: "" countersign: the command is denied: "rm b" is not among the commands that may run (echo, sort)
}
