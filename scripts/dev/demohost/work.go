package demohost

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// work is a command with its initial state.
type work struct {
	command string
	posix   bool              // it is written for sh
	vars    map[string]string // exported
	dir     string
	in      *os.File
	out     io.Writer
	errs    io.Writer
}

// outcome describes how a command ended.
type outcome struct {
	code int
	dir  string
	vars map[string]string // exported
	left int               // programs in the background, which were ended
}

// The reasons for which a command was ended.
var (
	errHangUp      = errors.New("hang-up")
	errInterrupted = errors.New("interrupt")
	errTimedOut    = errors.New("time limit")
	errStopped     = errors.New("stopped")
	errKilled      = errors.New("killed")
)

// signalled returns the reason for the end of a command that got the signal. The name is that of SSH, without SIG.
func signalled(name string) error {
	switch name {
	case "INT":
		return errInterrupted
	case "KILL":
		return errKilled
	}
	return errHangUp
}

// codes are the exit codes of ended commands: 128 plus the number of the signal.
var codes = map[error]int{errHangUp: 129, errInterrupted: 130, errTimedOut: 130, errStopped: 130, errKilled: 137}

// run executes a command, and ends the processes that it leaves behind. It returns when the command has ended.
func (s *shell) run(ctx context.Context, w work) (o outcome) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o = outcome{code: 1, dir: w.dir, vars: w.vars}
	lang := syntax.LangBash
	if w.posix {
		lang = syntax.LangPOSIX
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(w.command), "bash")
	if err != nil {
		_, _ = io.WriteString(w.errs, err.Error()+"\n") // the reader may be gone
		o.code = 2
		return o
	}
	var done func()
	s.end = func() { cancel(errKilled) }
	s.pid, done = s.machine.started(w.command, s.end)
	defer done()
	r, err := s.runner(w.vars, w.dir, w.in, w.out, w.errs)
	if err != nil {
		_, _ = io.WriteString(w.errs, err.Error()+"\n") // as above
		return o
	}
	o.code = exitCode(r.Run(ctx, file), w.errs)
	if code, ended := codes[context.Cause(ctx)]; ended && ctx.Err() != nil {
		o.code = code
	}
	var over <-chan struct{}
	o.left, over = s.busy.close()
	cancel(errKilled)
	select { // all parts are ending now
	case <-over:
	case <-time.After(2 * time.Second):
	}
	o.dir, o.vars = r.Dir, map[string]string{}
	for name, v := range r.Vars {
		if v.Exported && v.Kind == expand.String {
			o.vars[name] = v.Str
		}
	}
	return o
}
