package countersign_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/countersign-run/countersign/shared/countersign"
)

// A skill is a folder with a SKILL.md, of a directory (SkillDir) or of an embed.FS or any other file system. The model
// reads it when it needs it.
func ExampleSkillFS() {
	files := fstest.MapFS{"skills/greeting/SKILL.md": {Data: []byte(`---
name: greeting
description: Says hello. Use it when somebody says hello.
---
Greet them by name.
`)}}
	agent, err := countersign.New(countersign.Options{
		Skills:   []countersign.Skills{countersign.SkillFS(files)},
		Provider: newScript(call("activate_skill", map[string]any{"name": "greeting"}), say("Hello, Ana.")),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()
	for ev, err := range agent.NewSession().SendStream(context.Background(), "Hello, I am Ana.") {
		if err != nil {
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case *countersign.SkillActivated:
			fmt.Println("The model follows", ev.Skill)
		case *countersign.Finished:
			fmt.Println(ev.Text)
		}
	}
	// Output:
	// The model follows greeting
	// Hello, Ana.
}

// A folder without a usable skill is an error of New, with the file and the line.
func ExampleSkillDir() {
	_, err := countersign.New(countersign.Options{
		Skills:   []countersign.Skills{countersign.SkillDir("testdata/broken")},
		Provider: newScript(),
	})
	fmt.Println(err)
	// Output:
	// ValidationError invalid (Skills): testdata/broken/greeting/SKILL.md:2: description is missing
}
