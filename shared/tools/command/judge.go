package command

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// The IDs of the rules. The audit stores them, so do not rename them.
const (
	RuleReadOnly = "command_read_only" // the command is read-only, and the user lets such commands run on this host
	RuleAsks     = "command_asks"
	RuleDenied   = "command_denied" // the operator's configuration denies it
)

// normalize refuses commands that a person might read differently from the shell, and brings read-only commands into
// canonical form. It refuses text that no shell's grammar accepts. [runner.ruling] also refuses text that the grammar
// of the host's own shell does not accept.
func normalize(a Args) (Args, error) {
	if visible.Blank(a.Reasoning) {
		return a, fault.Invalid("reasoning", "say why this command is needed")
	}
	j, err := shell.Judge(a.Command, shell.Bash)
	if err != nil {
		if j, posix := shell.Judge(a.Command, shell.POSIX); posix == nil {
			a.Command = j.Command
			return a, nil
		}
		return a, err
	}
	a.Command = j.Command
	return a, nil
}

// classes maps the classes of commands to those of tools.
var classes = map[shell.Class]tool.Class{shell.ReadOnly: tool.ClassRead, shell.Change: tool.ClassChange,
	shell.Opaque: tool.ClassOpaque, shell.Destructive: tool.ClassDestructive}

// rule returns the policy for a command on the terminal's host.
func (r *runner) rule(ctx context.Context, c tool.Call, a Args) (tool.CallPolicy, error) {
	at, err := r.site(ctx, c.Scope())
	if err != nil {
		return tool.CallPolicy{}, err
	}
	return r.ruling(a, at)
}

// ruling returns the policy for a command on the terminal's host.
func (r *runner) ruling(a Args, at site) (tool.CallPolicy, error) {
	j, err := shell.Judge(a.Command, grammar(&at.Host))
	if err != nil {
		return tool.CallPolicy{}, err
	}
	out := tool.CallPolicy{Class: classes[j.Class], Mode: tool.RuleAsk, ID: RuleAsks, Facts: at.facts(j.Class),
		Warnings: warnings(a.Command, j.Warnings),
		Reason:   "A command waits for your yes unless it only looks, and you let such commands run on this host."}
	switch {
	case slices.ContainsFunc(j.Names, func(name string) bool { return r.denied[name] }):
		out.Mode, out.ID = tool.RuleDeny, RuleDenied
		out.Reason = "The operator of this service has forbidden a program that this command names."
	case len(r.denied) > 0 && j.Has(shell.Opaque):
		out.Mode, out.ID = tool.RuleDeny, RuleDenied
		out.Reason = "The operator of this service has forbidden some programs, and of this command it cannot be " +
			"told in advance what it runs."
	case runsUnasked(&j, at):
		out.Mode, out.ID = tool.RuleAllow, RuleReadOnly
		out.Reason = "It only looks, and you let such commands run on this host."
		if j.Repository != nil {
			out.Reason = "It only looks at a repository, the host runs it only if no key of the repository's " +
				"configuration can run a program, and you let such commands run on this host."
		}
	case j.Class == shell.ReadOnly || j.Class == shell.Change:
		out.Always = always(a, at)
	case j.Class == shell.Destructive:
		out.Confirm = at.Host.Name
	}
	if out.Mode == tool.RuleAsk && at.Host.Unasked() == terminal.AutoRunReadOnly && slices.Contains(j.Names, "git") {
		out.Reason = asksOfGit
	}
	if out.Mode == tool.RuleAsk && at.Real != "" {
		out.Reason += bound
	}
	return out, nil
}

// bound is the text on a card about the directory, which must be the same when the command starts.
const bound = " If its directory leads to another place by then, nothing runs and you are asked again."

// asksOfGit is the reason why a git command needs approval on a host where other read-only commands do not.
const asksOfGit = "This git command waits for your yes: it may print files or change something, and the " +
	"configuration of a repository can have git run another program."

// always returns the permission that the user can give for this command: exactly these words, in this directory of this
// host. Only a single program with literal words can have one, and only if no configuration of the host's user can
// change its effect. The program's file is pinned when the command runs (standing).
func always(a Args, at site) *tool.Always {
	words, err := shell.Allow(a.Command)
	if err != nil || len(words) != 1 || shell.Configured(words[0]) ||
		grammar(&at.Host) != shell.Bash && grammar(&at.Host) != shell.POSIX {
		return nil
	}
	line, _ := visible.Line(shell.Quote(words[0]))
	return &tool.Always{Key: hashed(at.hostKey(), at.lasting()) + "\x00" + strings.Join(words[0], "\x00"),
		Shown: fmt.Sprintf("%s on %s, by the program file of today, without variables of earlier commands", line,
			at.name())}
}

// facts returns the facts about a command for the audit. They contain no text of the command.
func (at site) facts(class shell.Class) tool.Facts {
	f := tool.Facts{"host": at.Host.ID, "class": string(class)}
	if keys := slices.Concat(at.Host.HostKeys, at.Host.CertAuthorities); len(keys) > 0 {
		f["hostKey"] = keys[0].SHA256
	}
	return f
}

// note returns the facts about the outcome of a command for the audit.
func note(_ Args, out Result) tool.Facts {
	f := tool.Facts{"exit": strconv.Itoa(out.ExitCode)}
	if out.TimedOut {
		f["timedOut"] = "true"
	}
	return f
}

// runsUnasked reports whether the user lets the command run on the host without approval: it is read-only, and prints
// only files in the allowed folders. For a git command, the host itself checks the repository.
func runsUnasked(j *shell.Judgment, at site) bool {
	if at.Host.Unasked() != terminal.AutoRunReadOnly {
		return false
	}
	outside := func(file string) bool {
		return !within(at.Host.ReadPaths, absolute(inHome(file, at.Host.Home), at.Cwd))
	}
	if r := j.Repository; r != nil {
		return !r.Prints || !outside(r.Dir)
	}
	return j.Class == shell.ReadOnly && !slices.ContainsFunc(slices.Concat(j.Reads, j.Needs), outside)
}

// inHome returns a path with ~ replaced by the home directory, if that is known.
func inHome(file, home string) string {
	if home != "" && (file == "~" || strings.HasPrefix(file, "~/")) {
		return home + file[1:]
	}
	return file
}

// absolute returns the path of a file as a shell in the directory cwd resolves it, or "" if that is not known. A path
// with ".." is not known, because ".." after a link leads to the parent of the link's target.
func absolute(file, cwd string) string {
	if !path.IsAbs(file) && cwd != "" && file[0] != '~' {
		file = cwd + "/" + file
	}
	if !path.IsAbs(file) || slices.Contains(strings.Split(file, "/"), "..") {
		return ""
	}
	return path.Clean(file)
}

// within reports whether a clean path is one of the folders or below one.
func within(folders []string, file string) bool {
	return file != "" && slices.ContainsFunc(folders, func(folder string) bool {
		folder = path.Clean(folder)
		return path.IsAbs(folder) && (file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/"))
	})
}

// grammar returns the grammar of the shell that runs commands on the host.
func grammar(h *terminal.Host) shell.Grammar {
	if h.Shell == "" {
		return shell.Bash
	}
	return h.Shell
}

// warnings returns the warnings as sentences, each with the part of the command that it refers to.
func warnings(command string, given []shell.Warning) []string {
	var out []string
	for _, w := range given {
		part, _ := visible.Line(clip.Text(command[w.Start:w.End], maxPart))
		out = append(out, fmt.Sprintf("%s At character %d: %s", w.Text,
			utf8.RuneCountInString(command[:w.Start])+1, part))
	}
	return out
}

// maxPart is the maximum length of a command's part in a warning, in bytes.
const maxPart = 80

// preview shows the whole command. The card shows the place first, and takes the class and warnings from the ruling.
func preview(a Args) tool.Preview {
	p := tool.Preview{Title: "Run a command"}
	p.AddText("Command", a.Command)
	p.AddField("Ended after", fmt.Sprintf("at most %d seconds", int(a.limit().Seconds())))
	p.AddText("The assistant says", a.Reasoning)
	return p
}

// summary describes the command in the thread, which only its owner can read.
func summary(a Args) string {
	line, _ := visible.Line(strings.ReplaceAll(a.Command, "\n", " ⏎ "))
	return fmt.Sprintf("Ran “%s”.", clip.Text(line, maxSummaryLine))
}

// maxSummaryLine is the maximum length of a command in a run's summary, in bytes.
const maxSummaryLine = 200
