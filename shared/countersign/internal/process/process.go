// Package process runs a list of commands without a shell. It starts the programs, connects their streams and
// evaluates their exit codes. Time and output are limited. Each program has its own process group, which is killed at
// the time limit and after the program has ended. Nothing that a program leaves behind survives, unless it started
// its own session.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/base/subprocess"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// The exit codes for programs that could not be started, as in a shell.
const (
	cannotRun = 126
	notFound  = 127
)

// Command is a command to run, with its environment and limits.
type Command struct {
	List  shell.List
	Dir   string   // absolute path
	Env   []string // the complete environment
	Stdin string
}

// Result is the result of a command.
type Result struct {
	Stdout, Stderr string
	Truncated      bool // whether Stdout or Stderr was cut; a mark at its end says by how much
	ExitCode       int  // of the last program; 128 plus the signal's number if a signal ended it
}

// Run runs a command. A non-zero exit code is not an error. The error is the context's, together with the output so
// far, or the system's if it has no processes or files left.
func Run(ctx context.Context, c Command) (Result, error) {
	streams, err := open(c.Stdin)
	if err != nil {
		return Result{}, err
	}
	r := run{Command: c, ctx: ctx, streams: streams, alive: map[*exec.Cmd]bool{}}
	stop := context.AfterFunc(ctx, r.kill)
	code, err := r.list()
	stop()
	result := streams.close()
	result.ExitCode = code
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return result, err
}

type run struct {
	Command
	ctx     context.Context
	streams *streams

	mu    sync.Mutex
	alive map[*exec.Cmd]bool // programs that are still running
}

func (r *run) list() (code int, err error) {
	for _, p := range r.List {
		if r.ctx.Err() != nil {
			break
		}
		if p.When == shell.IfSucceeded && code != 0 || p.When == shell.IfFailed && code == 0 {
			continue
		}
		if code, err = r.pipeline(p.Commands); err != nil {
			return code, err
		}
		if p.Not && code == 0 {
			code = 1
		} else if p.Not {
			code = 0
		}
	}
	return code, nil
}

// pipeline runs programs at the same time; each reads the output of the previous one. It returns the exit code of the
// last one.
func (r *run) pipeline(pipe [][]string) (code int, err error) {
	var waits []func() int
	in := r.streams.in
	for i, argv := range pipe {
		out, next := r.streams.out, (*os.File)(nil)
		if i < len(pipe)-1 {
			if next, out, err = os.Pipe(); err != nil {
				break
			}
		}
		var wait func() int
		if wait, err = r.start(argv, in, out); err == nil {
			waits = append(waits, wait)
		}
		r.release(in, out)
		in = next
	}
	r.release(in)
	if err != nil {
		r.kill()
	}
	for _, wait := range waits {
		code = wait()
	}
	return code, err
}

// release closes the programs' ends of the pipes.
func (r *run) release(ends ...*os.File) {
	for _, f := range ends {
		if f != nil && f != r.streams.in && f != r.streams.out {
			f.Close()
		}
	}
}

// start starts a program and returns a function that waits for its exit code. A missing or unusable program also has
// an exit code; an error comes from the system.
func (r *run) start(argv []string, in, out *os.File) (wait func() int, err error) {
	failed := func(code int, why string) (func() int, error) {
		fmt.Fprintf(r.streams.err, "%s: %s\n", argv[0], why)
		return func() int { return code }, nil
	}
	file, err := r.find(argv[0])
	if err != nil {
		return failed(notFound, "not found")
	}
	cmd := &exec.Cmd{Path: file, Args: argv, Dir: r.Dir, Env: r.Env, Stdin: in, Stdout: out, Stderr: r.streams.err}
	subprocess.Own(cmd)
	switch err := cmd.Start(); {
	case outOfResources(err):
		return nil, err
	case err != nil:
		return failed(cannotRun, "cannot be run")
	}
	r.mu.Lock()
	r.alive[cmd] = true
	r.mu.Unlock()
	if r.ctx.Err() != nil { // the group was killed while the program started
		r.kill()
	}
	return func() int {
		_ = cmd.Wait() // the exit code is in the state
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.alive, cmd)
		subprocess.Kill(cmd.Process) // kill the rest of the group; its number is not reused so soon
		return exitCode(cmd.ProcessState)
	}, nil
}

// kill kills all programs and the processes that they started. It does not ask them to end first, because they could
// ignore that.
func (r *run) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cmd := range r.alive {
		subprocess.Kill(cmd.Process)
	}
}

// find returns the file of a program: by its path relative to Dir, or the first file of its name in the absolute
// folders of PATH.
func (r *run) find(name string) (string, error) {
	if name == "" {
		return "", exec.ErrNotFound
	}
	if filepath.IsAbs(name) {
		return exec.LookPath(name)
	}
	if strings.ContainsAny(name, `/\`) {
		return exec.LookPath(filepath.Join(r.Dir, name))
	}
	path := ""
	for _, v := range r.Env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if file, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return file, nil
		}
	}
	return "", errors.New("not found in any folder of PATH")
}
