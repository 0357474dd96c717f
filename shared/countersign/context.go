package countersign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/subprocess"
	"github.com/countersign-run/countersign/shared/countersign/internal/files"
	"github.com/countersign-run/countersign/shared/countersign/internal/process"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// SessionContext is what a tool and Options.InstructionsFunc know of the session that they are called for. It is made
// for each call.
type SessionContext struct {
	SessionID string
	RunID     string // empty for InstructionsFunc, which is asked before the run begins
	ActionID  string // the call's id, the same across crashes: an effect's idempotency key; empty for InstructionsFunc
	User      string // whom the agent acts for
	Dir       string // Options.Dir, absolute
	Time      time.Time
	Agent     *Agent // as this user

	FS    FS    // the files of Dir
	Shell Shell // runs Options.Commands in Dir
}

// Transcript returns the session's messages so far, including the turn that the call belongs to. Each call reads them
// from the store.
func (s *SessionContext) Transcript(ctx context.Context) ([]Message, error) {
	all, err := (&Session{agent: s.Agent, id: s.SessionID}).Messages(ctx)
	if errors.Is(err, ErrNoSession) && s.RunID == "" { // nothing was said yet
		return nil, nil
	}
	return all, err
}

// FS are the files of Options.Dir. Names are relative to it, with slashes. Those that lead out of it, by "..", by a
// link or because they are absolute, are [fs.ErrPermission], and so are names that hold secrets: .env*, .git, .netrc,
// *.pem, *.key, id_rsa* and the like, and the files of a store. It is an [fs.FS]: [fs.Glob] and [fs.WalkDir] work
// on it.
type FS struct{ dir files.Dir }

// ReadFile returns the content of a file of at most 1 MiB; [fs.ErrNotExist] where there is none.
func (f FS) ReadFile(name string) ([]byte, error) { return f.dir.ReadFile(name) }

// WriteFile replaces the content of a file, or creates the file and its missing folders: at most 1 MiB. A reader sees
// the new content or the old one, never a part, even after a crash. Use [DefineEffect] for a tool that writes, if its
// user is to approve the writing.
func (f FS) WriteFile(name string, data []byte) error { return f.dir.WriteFile(name, data) }

// Rename gives a file or a folder another name, and makes the folders that are missing; a file that has that name is
// replaced. A link stands for what it leads to.
func (f FS) Rename(from, to string) error { return f.dir.Rename(from, to) }

// Remove deletes a file, or a folder that is empty. A link stands for what it leads to.
func (f FS) Remove(name string) error { return f.dir.Remove(name) }

// Open implements [fs.FS]. Of a file no more than 1 MiB is read.
func (f FS) Open(name string) (fs.File, error) { return f.dir.Open(name) }

// ReadDir implements [fs.ReadDirFS]. It leaves out names that hold secrets.
func (f FS) ReadDir(name string) ([]fs.DirEntry, error) { return f.dir.ReadDir(name) }

// Shell runs commands that Options.Commands allow, in Options.Dir.
type Shell struct {
	dir     string
	allowed shell.Allowed
}

// ShellOptions are what a command is given. The zero value is enough.
type ShellOptions struct {
	Env     []string      // KEY=value, beside PATH, HOME and LANG, which are this process's unless they are among them
	Stdin   string        // empty: there is nothing to read
	Timeout time.Duration // 0: 30 s; at most 10 min
}

// ShellResult is what came of a command.
type ShellResult struct {
	Stdout, Stderr string // the first 1 MiB of each
	Truncated      bool   // whether one of them was longer, which it says at its end
	ExitCode       int    // of the last program; 127 where there is none of its name, 128 and a signal's number
}

// Bounds of a command.
const (
	shellTimeout    = 30 * time.Second
	maxShellTimeout = 10 * time.Minute
)

// Exec runs a simple command, or several joined by |, &&, || and ;. Each must begin with an entry of Options.Commands,
// and all of its words must be literal. After the entry of a known program, only options that neither run a program nor
// write a file may follow: "git log" allows git log -5, but not git log --output=FILE. The entry of any other program
// allows exactly its own words. An entry that ends in "..." allows any further words. Constructs that need a shell are
// refused with [ErrCommandDenied], and nothing runs: substitutions, variables, patterns, redirections, assignments,
// functions, background jobs, and builtins such as eval and cd. No shell is started.
//
// A nonzero exit code is not an error. After the time limit, the command and the processes it started are killed; the
// error is [context.DeadlineExceeded], and the result has the output so far. Use [DefineEffect] for a tool that runs
// commands, if its user is to approve them.
func (s Shell) Exec(ctx context.Context, command string, o ShellOptions) (ShellResult, error) {
	list, err := s.allowed.Parse(command)
	if err != nil {
		return ShellResult{}, fmt.Errorf("%w: %w", ErrCommandDenied, err)
	}
	if o.Timeout == 0 {
		o.Timeout = shellTimeout
	}
	if o.Timeout < 0 || o.Timeout > maxShellTimeout {
		return ShellResult{}, public(fault.Invalid("Timeout", "it is %s, and has to be at most %s", o.Timeout,
			maxShellTimeout))
	}
	env, err := environ(o.Env)
	if err != nil {
		return ShellResult{}, public(err)
	}
	late := fmt.Errorf("countersign: the command took longer than %s: %w", o.Timeout, context.DeadlineExceeded)
	ctx, stop := context.WithTimeoutCause(ctx, o.Timeout, late)
	defer stop()
	if begun, ok := ctx.Value(commandOfTool{}).(*atomic.Bool); ok {
		begun.Store(true)
	}
	r, err := process.Run(ctx, process.Command{List: list, Dir: s.dir, Env: env, Stdin: o.Stdin})
	return ShellResult(r), err
}

// environ returns the environment of a command. Of two values of a name the later counts.
func environ(given []string) (env []string, err error) {
	for i, v := range given {
		if strings.Index(v, "=") < 1 || strings.ContainsRune(v, 0) {
			return nil, fault.Invalid(fmt.Sprintf("Env[%d]", i), "it has to be KEY=value")
		}
	}
	return append(subprocess.Environ("PATH", "HOME", "LANG"), given...), nil
}

// setCommands checks the commands that may run.
func (c *core) setCommands() error {
	var wrong []error
	for i, entry := range c.options.Commands {
		argv, err := shell.Allow(entry)
		if err != nil {
			wrong = append(wrong, fault.Invalid(fmt.Sprintf("Commands[%d]", i), "%s", err.Error()))
		}
		c.allowed = append(c.allowed, argv...)
	}
	return errors.Join(wrong...)
}

// contextFor returns what Options.InstructionsFunc knows of the session that it is asked for.
func (c *core) contextFor(user, session string) *SessionContext {
	return c.contextOf(tool.Call{UID: user, ThreadID: session})
}

// contextOf returns what a tool knows of the session that it is called for.
func (c *core) contextOf(call tool.Call) *SessionContext {
	return &SessionContext{SessionID: call.ThreadID, RunID: call.RunID, ActionID: call.ActionID, User: call.UID,
		Dir: c.dir, Time: c.loop.Now(), Agent: &Agent{core: c, user: call.UID}, FS: FS{files.Dir(c.dir)},
		Shell: Shell{c.dir, c.allowed}}
}
