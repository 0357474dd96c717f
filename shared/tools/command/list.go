package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// RunList is the name of the tool that runs several commands as one call, so one approval covers all of them.
const RunList = "run_commands"

// MaxList is the maximum number of commands in a list.
const MaxList = 10

// List are the arguments of run_commands. The commands run in their order until one fails.
type List struct {
	Commands  []Line `json:"commands" jsonschema:"The command lines, in the order in which they run."`
	Reasoning string `json:"reasoning" jsonschema:"Why these commands, in one or two sentences for the user."`
}

// Line is one command of a list.
type Line struct {
	Command        string `json:"command" jsonschema:"One command line, for the shell of the host."`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"Limit in seconds: 30 if left out, at most 900."`
}

// args returns a command of the list as the arguments of run_command.
func (l List) args(i int) Args {
	return Args{Command: l.Commands[i].Command, Reasoning: l.Reasoning, TimeoutSeconds: l.Commands[i].TimeoutSeconds}
}

// each returns the commands of the list as the arguments of run_command.
func (l List) each() []Args {
	all := make([]Args, len(l.Commands))
	for i := range l.Commands {
		all[i] = l.args(i)
	}
	return all
}

// atMost returns the longest duration of a call.
func (l List) atMost() (d time.Duration) {
	for _, a := range l.each() {
		d += a.atMost()
	}
	return d
}

// ListResult is the result of a list, for the model and for the card.
type ListResult struct {
	Commands []LineResult `json:"commands"` // all commands of the list, in its order
}

// LineResult is the result of one command of a list.
type LineResult struct {
	Command string  `json:"command"`
	Result  *Result `json:"result,omitempty"`
	NotRun  bool    `json:"notRun,omitempty"` // the list ended before this command
}

func (r *runner) listTool() *tool.Tool {
	return tool.Define(tool.Def[List, ListResult]{
		Name: RunList,
		Description: fmt.Sprintf("Runs up to %d commands on the host of the user's terminal, one after the other, and "+
			"returns what each printed and its exit code. Each begins in the directory where the one before it ended. "+
			"The first exit code other than 0 ends the list. The user decides about the whole list once.", MaxList),
		SideEffect:  true,
		Class:       tool.ClassOpaque, // for commands that can no longer be judged
		Untrusted:   true,
		Echoes:      true,
		KeepsOutput: true,
		Moves:       true,
		Refine:      refineList,
		Normalize:   normalizeList,
		Rule:        r.listRule,
		Note:        listNote,
		Shows:       listShows,
		Replaces:    listReplaces,
		Targets:     func(List) []tool.Target { return nil },
		Preview:     listPreview,
		Summary:     listSummary,
		Heading:     func(l List) string { return "Commands: " + l.text(" ⏎ ") },
		Step:        listStep,
		Place:       r.place,
		Reads:       terminal.Reads,
		Limit:       List.atMost,
		Effects:     func(l List) int { return len(l.Commands) },
		Prepare:     r.prepareList,
		Execute:     r.executeList,
		Reconcile:   r.reconcileList,
		Interrupt:   r.interruptList,
	})
}

func refineList(s *jsonschema.Schema) {
	text(s, "reasoning", maxReasoning)
	lines := s.Properties["commands"]
	lines.MinItems, lines.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(MaxList)
	text(lines.Items, "command", shell.MaxLength)
	timed(lines.Items)
}

// normalizeList applies the rules of run_command to each command of the list.
func normalizeList(l List) (List, error) {
	l.Commands = slices.Clone(l.Commands)
	for i, a := range l.each() {
		a, err := normalize(a)
		switch {
		case err != nil && fault.As(err).Field == "reasoning":
			return l, err
		case err != nil:
			return l, fault.Within(fmt.Sprintf("commands/%d", i), err)
		}
		l.Commands[i].Command = a.Command
	}
	return l, nil
}

// text returns the commands of the list as one text.
func (l List) text(between string) string {
	lines := make([]string, len(l.Commands))
	for i, line := range l.Commands {
		lines[i] = line.Command
	}
	return strings.Join(lines, between)
}

// numbered returns the label of a command on the list's card.
func numbered(i int) string { return fmt.Sprintf("Command %d", i+1) }

// listPreview shows each command in full. Each warning names its command.
func listPreview(l List) tool.Preview {
	p := tool.Preview{Title: "Run " + count(len(l.Commands))}
	var limits []string
	for i, a := range l.each() {
		p.AddText(numbered(i), a.Command)
		p.Fields[len(p.Fields)-1].Argument = "commands"
		limits = append(limits, strconv.Itoa(int(a.limit().Seconds())))
	}
	if len(slices.Compact(slices.Clone(limits))) == 1 {
		limits = append(limits[:1:1], "each")
		p.AddField("Ended after", fmt.Sprintf("at most %s seconds %s", limits[0], limits[1]))
	} else {
		p.AddField("Ended after", "at most "+strings.Join(limits, ", ")+" seconds, in this order")
	}
	p.AddField("Stops", "At the first command with an exit code other than 0; the rest is then not run")
	p.AddText("The assistant says", l.Reasoning)
	return p
}

// count returns a number of commands in words.
func count(n int) string {
	if n == 1 {
		return "a list of 1 command"
	}
	return fmt.Sprintf("a list of %d commands", n)
}

// listSummary describes the list in the thread, which only its owner can read.
func listSummary(l List) string {
	line, _ := visible.Line(strings.ReplaceAll(l.text("\n"), "\n", " ⏎ "))
	return fmt.Sprintf("Ran “%s”.", clip.Text(line, maxSummaryLine))
}

// listNote returns the facts about the outcome of a list for the audit: the exit code of the last command that ran, and
// the number of commands that ran.
func listNote(_ List, out ListResult) tool.Facts {
	f := tool.Facts{}
	ran := 0
	for _, line := range out.Commands {
		if line.Result == nil {
			continue
		}
		ran++
		f = note(Args{}, *line.Result)
	}
	return f.With(tool.Facts{"commandsRun": strconv.Itoa(ran)})
}

// listShows returns the file contents that the commands have printed.
func listShows(l List, out ListResult) (parts []tool.Part) {
	for i, line := range out.Commands {
		if line.Result != nil && i < len(l.Commands) {
			parts = append(parts, shows(l.args(i), *line.Result)...)
		}
	}
	return parts
}

// listReplaces returns the files that the commands overwrite with a text of the model.
func listReplaces(l List) (texts []tool.Text) {
	for _, a := range l.each() {
		texts = append(texts, replaces(a)...)
	}
	return texts
}
