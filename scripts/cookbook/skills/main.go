package main // go run ./scripts/cookbook/skills; SKILL.md says how the task is done, and which tools it takes

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log"

	_ "github.com/countersign-run/countersign/scripts/cookbook/offline" // a scripted Gemini, where there is no key
	"github.com/countersign-run/countersign/shared/countersign"
)

//go:embed skills
var files embed.FS

type Version struct{ Version string }

var changes = countersign.DefineTool(
	countersign.ToolConfig{Name: "list_changes", Description: "Lists the changes of a version."},
	func(context.Context, *countersign.SessionContext, Version) ([]string, error) {
		return []string{"export as CSV", "rename a helper", "fix time zones in invitations"}, nil
	})

var tag = countersign.DefineTool( // which the skill does not name, and so not while it is active
	countersign.ToolConfig{Name: "tag", Description: "Tags a version."},
	func(context.Context, *countersign.SessionContext, Version) (string, error) { return "tagged", nil })

func main() {
	agent, err := countersign.New(countersign.Options{
		InstructionsFunc: func(ctx context.Context, s *countersign.SessionContext) (string, error) {
			notes, err := s.FS.ReadFile("AGENT.md") // of the working directory, where there is one
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return "You release software.\n" + string(notes), err
		},
		Tools:  []*countersign.Tool{changes, tag},
		Skills: []countersign.Skills{countersign.SkillFS(files)}, // or countersign.SkillDir("skills")
	})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	for ev, err := range agent.NewSession().SendStream(context.Background(), "What is new in version 1.2?") {
		if err != nil {
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case *countersign.SkillActivated:
			fmt.Println("follows the skill", ev.Skill)
		case *countersign.ToolFinished:
			fmt.Println("called", ev.Tool, ev.Err)
		case *countersign.Finished:
			fmt.Println(ev.Text)
		}
	}
}
