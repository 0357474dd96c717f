package docker

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// RuleAsks is the ID of the rule that makes run_shell_command always ask. The audit stores it: do not rename it.
const RuleAsks = "container_command_asks"

// ShellArgs are the arguments of run_shell_command.
type ShellArgs struct {
	Command        string `json:"command" jsonschema:"One command line for the /bin/sh of the task's container, in /work."`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"Seconds after which it is ended: 120 if left out, at most 300."`
}

func (t *tools) shell() *tool.Tool {
	return running(t, tool.Def[ShellArgs, Result]{
		Name: Shell,
		Description: "Runs one command in the container of this task, which must have exactly one, and returns what " +
			"it printed and its exit code. Its user is asked each time.",
		Class: tool.ClassOpaque,
		Refine: func(s *jsonschema.Schema) {
			s.Properties["command"].MinLength, s.Properties["command"].MaxLength = jsonschema.Ptr(1),
				jsonschema.Ptr(shell.MaxLength)
			refineSeconds(s)
		},
		Normalize: func(a ShellArgs) (ShellArgs, error) {
			j, err := shell.Judge(a.Command, shell.POSIX)
			a.Command = j.Command
			return a, err
		},
		Rule: ruleShell,
		Preview: func(a ShellArgs) tool.Preview {
			p := tool.Preview{Title: "Run a command in the task's container"}
			p.AddText("Command", a.Command)
			p.AddField("Ended after", fmt.Sprintf("at most %d seconds", int(limit(a.TimeoutSeconds).Seconds())))
			t.warn(&p)
			return p
		},
		Summary: func(a ShellArgs) string {
			line, _ := visible.Line(a.Command)
			return fmt.Sprintf("Ran “%s” in the container.", clip.Text(line, maxSummaryLine))
		},
	}, func(a ShellArgs) script { return script{a.Command, limit(a.TimeoutSeconds)} }, onlyContainer)
}

// maxSummaryLine and maxPart limit how much of a command is repeated by the summary of a run, and by a warning. Both
// are in bytes.
const (
	maxSummaryLine = 200
	maxPart        = 80
)

var classes = map[shell.Class]tool.Class{shell.ReadOnly: tool.ClassRead, shell.Change: tool.ClassChange,
	shell.Opaque: tool.ClassOpaque, shell.Destructive: tool.ClassDestructive}

// ruleShell requires approval for each command, and shows the shell judge's findings on the card.
func ruleShell(_ context.Context, _ tool.Call, a ShellArgs) (tool.CallPolicy, error) {
	j, err := shell.Judge(a.Command, shell.POSIX)
	if err != nil {
		return tool.CallPolicy{}, err
	}
	r := tool.CallPolicy{Class: classes[j.Class], Mode: tool.RuleAsk, ID: RuleAsks,
		Facts:  tool.Facts{"class": string(j.Class)},
		Reason: "A command in a container waits for your yes."}
	for _, w := range j.Warnings {
		part, _ := visible.Line(clip.Text(a.Command[w.Start:w.End], maxPart))
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s At character %d: %s", w.Text,
			utf8.RuneCountInString(a.Command[:w.Start])+1, part))
	}
	return r, nil
}

// onlyContainer returns the run's only running container.
func onlyContainer(ctx context.Context, e Engine, c tool.Call, _ ShellArgs) (string, error) {
	has, err := e.List(ctx, owner(c), "", false)
	if err != nil {
		return "", nothingDone(err)
	}
	if len(has) != 1 {
		return "", fault.New(fault.Tool, CodeWhich, "The task has %d containers that run. Create one, or name one of "+
			"several with %s.", len(has), Script)
	}
	return has[0].ID, nil
}

// GitArgs are the arguments of configureGitClientInContainer. No argument takes a credential.
type GitArgs struct {
	ContainerID string `json:"containerId" jsonschema:"The id that createContainer has returned."`
	Username    string `json:"username" jsonschema:"The name on GitHub that commits are made by."`
}

func (t *tools) configureGit() *tool.Tool {
	return running(t, tool.Def[GitArgs, Result]{
		Name: ConfigureGit,
		Description: "Sets the name and GitHub's no-reply address for git commits in a container. No " +
			"credential enters it, so it can push nothing.",
		Refine: func(s *jsonschema.Schema) {
			s.Properties["containerId"].Pattern = idPattern
			s.Properties["username"].Pattern = `^[A-Za-z0-9][A-Za-z0-9-]{0,38}$`
		},
		Pinned: func(a GitArgs) any { return map[string]string{"username": a.Username} },
		Preview: func(a GitArgs) tool.Preview {
			p := tool.Preview{Title: "Set the author of commits in a container"}
			p.AddLine("Name", a.Username)
			p.AddLine("Address", address(a))
			p.AddLine("Container", a.ContainerID)
			return p
		},
		Summary: func(a GitArgs) string { return fmt.Sprintf("Set the author of commits to %s.", a.Username) },
	}, func(a GitArgs) script { // both contain only letters, digits, dashes and dots
		return script{"git config --global user.name " + a.Username +
			" && git config --global user.email " + address(a), DefaultLimit}
	}, func(_ context.Context, _ Engine, _ tool.Call, a GitArgs) (string, error) { return a.ContainerID, nil })
}

func address(a GitArgs) string { return a.Username + "@users.noreply.github.com" }
