package demomodel

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// The tools of a terminal.
const (
	commandTool  = "run_command"
	completeTool = "task_complete"
	askTool      = "ask_user"
)

// terminalRules are tasks of several commands. Each reads what the commands before have printed.
var terminalRules = []rule{
	{phrases: phrases("… (clean|clean up|cleanup|tidy|tidy up|free up|free|make room) …"), next: onTerminal(cleanUp)},
	{phrases: phrases("… (disk|disk usage|disk space|storage|how full) …"), next: onTerminal(diskUsage)},
	{phrases: phrases("… (install|add) [the] [(package|program|tool)] {package} [for me] [please] …"),
		next: onTerminal(install)},
	{phrases: phrases("… (restart|reload|bounce) [the] [(service|server)] {service} …"), next: onTerminal(restart)},
	{phrases: phrases("… (what is|what's|what are|which|show|list|see) … (running|processes|services|processes are) …",
		"… (processes|running processes)", "… (uses|using|eats|eating) … (memory|ram|cpu) …"),
		next: onTerminal(whatRuns)},
	{phrases: phrases("(run|execute) [(this|the)] [command] {command}"), next: onTerminal(runIt)},
}

// onTerminals lists example requests for a terminal.
var onTerminals = []string{"check disk usage and clean up /tmp if over 50%", "install htop", "what is running?"}

// onTerminal declines requests if there is no terminal to run commands on, unless the request mentions one.
func onTerminal(task func(*work)) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) {
		w := &work{ask: a}
		switch {
		case negated.MatchString(a.slots["lead"].mask):
		case a.onTerminal():
			task(w)
			return w.turn, w.over
		case a.talksOfTerminal():
			return says("Here I only talk: nothing is run. Switch ⚡ Agent on and say it again; I then propose one " +
				"command after the other, and each that changes something waits for your yes.")
		}
		return declined()
	}
}

// onTerminal reports whether commands can be run, by the tools of the terminal's agent and not by others of that name.
func (d *dialogue) onTerminal() bool {
	return d.tool(commandTool) != nil && d.tool(completeTool) != nil
}

// talksOfTerminal reports whether the request mentions commands although none can be run.
func (d *dialogue) talksOfTerminal() bool {
	return len(d.tools) == 0 && aboutTerminal.MatchString(d.System)
}

var aboutTerminal = lazyregexp.New(`(?i)\btheir terminal\b`)

// work is a task on a terminal: a function that lists its commands, from the first on. Each turn calls it again;
// commands that have an answer are skipped.
type work struct {
	*ask
	at   int // number of answered commands
	turn fakegemini.Turn
	over bool // the turn is complete
}

// run returns the result of a command, if there is one; otherwise it makes the turn call the command.
func (w *work) run(why, command string, seconds ...int) (result, bool) {
	if w.over {
		return result{}, false
	}
	if w.at < len(w.done) {
		w.at++
		return w.done[w.at-1].result(), true
	}
	args := map[string]any{"command": command, "reasoning": why}
	for _, s := range seconds {
		args["timeoutSeconds"] = s
	}
	w.call(commandTool, args)
	return result{}, false
}

// asked returns the user's answer to a question, if it was asked; otherwise the turn asks it.
func (w *work) asked(question string) (string, bool) {
	switch {
	case w.over:
	case w.at < len(w.done):
		answer, _ := w.done[w.at].body.(map[string]any)
		w.at++
		return scalar(answer["answer"]), true // empty where it was not answered
	case w.tool(askTool) == nil:
		w.say("%s", question)
	default:
		w.call(askTool, map[string]any{"question": question})
	}
	return "", false
}

// call turns the turn into a call.
func (w *work) call(tool string, args map[string]any) {
	w.turn, w.over = fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}, true
}

// complete ends the task.
func (w *work) complete(format string, args ...any) {
	if w.over {
		return
	}
	if w.NoTools {
		w.say(format, args...)
		return
	}
	w.call(completeTool, map[string]any{"summary": fmt.Sprintf(format, args...)})
}

func (w *work) say(format string, args ...any) {
	if !w.over {
		w.turn, w.over = words(fmt.Sprintf(format, args...)), true
	}
}

// named returns the name of a package or a service in the request, or asks for it once.
func (w *work) named(what, example string) (string, bool) {
	name, ok := plainName(w.slot(what, ""))
	if ok {
		return name, true
	}
	question := fmt.Sprintf("Which %s? I take one name, such as %s.", what, example)
	answer, answered := w.asked(question)
	if !answered {
		return "", false
	}
	if name, ok = plainName(answer); !ok {
		w.complete("Nothing was done: I know of no %s to take. %s", what, question)
	}
	return name, ok
}

// plainName returns the words as one name, and whether that is a valid name of a package or a service.
func plainName(words string) (string, bool) {
	name := strings.ToLower(strings.Trim(words, "\"'`“”.,!? "))
	return name, packageName.MatchString(name) && !noName.MatchString(name)
}

var (
	packageName = lazyregexp.New(`^[a-z0-9][a-z0-9.+-]{0,60}$`)
	noName      = lazyregexp.New(`^(it|one|something|package|program|tool|service|server)$`)
)

// runIt runs the command that its user has spelled out.
func runIt(w *work) {
	command := strings.Trim(w.slot("command", ""), "`")
	r, ok := w.run("You asked for this command.", command)
	switch {
	case !ok:
	case r.ok():
		w.complete("It ran, and ended with exit code 0.")
	default:
		w.complete("It did not end well. %s", r.why())
	}
}
