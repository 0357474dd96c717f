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

// SessionContext describes the session for which a tool or Options.InstructionsFunc is called. Each call gets a new
// one.
type SessionContext struct {
	SessionID string
	RunID     string // empty for InstructionsFunc, which is called before the run begins
	// the call's ID, the same after a crash: use it as an effect's idempotency key; empty for InstructionsFunc
	ActionID string
	User     string // the user that the agent acts for
	Dir      string // Options.Dir, absolute
	Time     time.Time
	Agent    *Agent // the agent for this user

	FS    FS    // the files in Dir
	Shell Shell // runs Options.Commands in Dir
}

// Transcript returns the session's messages so far, including the turn of this call. Each call of Transcript reads
// them from the store.
func (s *SessionContext) Transcript(ctx context.Context) ([]Message, error) {
	all, err := (&Session{agent: s.Agent, id: s.SessionID}).Messages(ctx)
	if errors.Is(err, ErrNoSession) && s.RunID == "" { // the session has no messages yet
		return nil, nil
	}
	return all, err
}

// FS gives access to the files in Options.Dir. Names are relative to it, with slashes. It refuses some names with
// [fs.ErrPermission]: names that lead out of Dir (by "..", by a link, or because they are absolute), names of files
// that hold secrets (.env*, .git, .netrc, *.pem, *.key, id_rsa* and similar), and the files of a store. It is an
// [fs.FS], so [fs.Glob] and [fs.WalkDir] work on it.
type FS struct{ dir files.Dir }

// ReadFile returns the content of a file of at most 1 MiB. The error is [fs.ErrNotExist] if there is no such file.
func (f FS) ReadFile(name string) ([]byte, error) { return f.dir.ReadFile(name) }

// WriteFile replaces the content of a file, or creates the file and its missing folders. The limit is 1 MiB. A reader
// sees the new content or the old one, never a part, even after a crash. If the user should approve the write, define
// the tool with [DefineEffect].
func (f FS) WriteFile(name string, data []byte) error { return f.dir.WriteFile(name, data) }

// Rename renames a file or folder, and creates missing folders. It replaces an existing file of the new name. A link
// is resolved first.
func (f FS) Rename(from, to string) error { return f.dir.Rename(from, to) }

// Remove deletes a file or an empty folder. A link is resolved first.
func (f FS) Remove(name string) error { return f.dir.Remove(name) }

// Open implements [fs.FS]. It reads at most 1 MiB of a file.
func (f FS) Open(name string) (fs.File, error) { return f.dir.Open(name) }

// ReadDir implements [fs.ReadDirFS]. It leaves out names that hold secrets.
func (f FS) ReadDir(name string) ([]fs.DirEntry, error) { return f.dir.ReadDir(name) }

// Shell runs commands that Options.Commands allow, in Options.Dir.
type Shell struct {
	dir     string
	allowed shell.Allowed
}

// ShellOptions configure a command. The zero value works.
type ShellOptions struct {
	Env     []string      // KEY=value, in addition to PATH, HOME and LANG, which have this process's values by default
	Stdin   string        // standard input; the default is empty
	Timeout time.Duration // 0: 30 s; at most 10 min
}

// ShellResult is the result of a command.
type ShellResult struct {
	Stdout, Stderr string // at most 1 MiB each
	Truncated      bool   // whether Stdout or Stderr was cut; the cut stream says so at its end
	// of the last program; 127 if the program does not exist, 128 plus the signal's number if a signal ended it
	ExitCode int
}

// The limits of a command.
const (
	shellTimeout    = 30 * time.Second
	maxShellTimeout = 10 * time.Minute
)

// Exec runs a simple command, or several commands joined by |, &&, || and ;. Each must begin with an entry of
// Options.Commands, and all of its words must be literal. After the entry of a known program, only options that
// neither run a program nor write or send a file can follow: "git log" allows git log -5, but not git log
// --output=FILE. The entry of any other program allows exactly its own words, and so does one that names an operand of
// a program that changes something, such as "cp a b". An entry that ends in "..." allows any further words.
//
// Exec refuses constructs that need a shell with [ErrCommandDenied], and runs nothing: substitutions, variables,
// patterns, redirections, assignments, functions, background jobs, and builtins such as eval and cd. It starts no
// shell. A non-zero exit code is not an error. After the time limit, Exec kills the command and the processes it
// started; the error is [context.DeadlineExceeded], and the result has the output so far. If the user should approve
// commands, define the tool with [DefineEffect].
func (s Shell) Exec(ctx context.Context, command string, o ShellOptions) (ShellResult, error) {
	list, err := s.allowed.Parse(command)
	if err != nil {
		return ShellResult{}, fmt.Errorf("%w: %w", ErrCommandDenied, err)
	}
	if o.Timeout == 0 {
		o.Timeout = shellTimeout
	}
	if o.Timeout < 0 || o.Timeout > maxShellTimeout {
		return ShellResult{}, public(fault.Invalid("Timeout", "%s; the limit is %s", o.Timeout,
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

// environ returns the environment of a command. If a name occurs twice, the later value applies.
func environ(given []string) (env []string, err error) {
	for i, v := range given {
		if strings.Index(v, "=") < 1 || strings.ContainsRune(v, 0) {
			return nil, fault.Invalid(fmt.Sprintf("Env[%d]", i), "must be KEY=value")
		}
	}
	return append(subprocess.Environ("PATH", "HOME", "LANG"), given...), nil
}

// setCommands checks Options.Commands.
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

// contextFor returns the context for Options.InstructionsFunc.
func (c *core) contextFor(user, session string) *SessionContext {
	return c.contextOf(tool.Call{UID: user, ThreadID: session})
}

// contextOf returns the context for a tool call.
func (c *core) contextOf(call tool.Call) *SessionContext {
	return &SessionContext{SessionID: call.ThreadID, RunID: call.RunID, ActionID: call.ActionID, User: call.UID,
		Dir: c.dir, Time: c.loop.Now(), Agent: &Agent{core: c, user: call.UID}, FS: FS{files.Dir(c.dir)},
		Shell: Shell{c.dir, c.allowed}}
}
