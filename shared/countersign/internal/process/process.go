// Package process carries out a list of commands without a shell: it starts programs with the words of the list,
// connects their streams and looks at their exit codes. Time and output are bounded. Each program has a process group
// of its own, which is killed when the time is over and when the program has ended: what it leaves running does not
// stay, unless it made itself a session of its own.
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

// The exit codes of what could not be started, as a shell has them.
const (
	cannotRun = 126
	notFound  = 127
)

// Command is a command to run, with its environment and limits.
type Command struct {
	List  shell.List
	Dir   string   // absolute
	Env   []string // all of it
	Stdin string
}

// Result is what came of a command.
type Result struct {
	Stdout, Stderr string
	Truncated      bool // whether one of them was cut; a mark at its end says by how much
	ExitCode       int  // of the last program; 128 and the signal's number where one ended it
}

// Run runs a command. A nonzero exit code is not an error. The error is ctx's, together with the output so far, or the
// system's, if it is out of processes or files.
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
	alive map[*exec.Cmd]bool // programs that were not waited for
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

// pipeline runs programs side by side, each reading what the one before it writes. The exit code is the last one's.
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

// release closes ends of pipes that the programs have.
func (r *run) release(ends ...*os.File) {
	for _, f := range ends {
		if f != nil && f != r.streams.in && f != r.streams.out {
			f.Close()
		}
	}
}

// start starts a program. What waits for it returns its exit code. A program that is not there, or is none, has one
// too; the error is of the system.
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
	if r.ctx.Err() != nil { // it was started while the others were killed
		r.kill()
	}
	return func() int {
		_ = cmd.Wait() // which says no more than the state
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.alive, cmd)
		subprocess.Kill(cmd.Process) // what it has left; its number is not given to another so soon
		return exitCode(cmd.ProcessState)
	}, nil
}

// kill ends all programs with what they have started. None is asked first: it could ignore that.
func (r *run) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for cmd := range r.alive {
		subprocess.Kill(cmd.Process)
	}
}

// find returns the file of a program: by its path from Dir, or the first of its name in the absolute folders of PATH.
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
	return "", errors.New("no folder of PATH has it")
}
