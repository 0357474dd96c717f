package demohost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// A shell belongs to one command line, or to a person. It can reach only the machine.
type shell struct {
	machine *machine
	size    func() (cols, rows int)
	pid     int
	busy    underway
	tty     *os.File    // the person's keys; nil: no person is attached
	screen  io.Writer   // the person's screen; nil: as above
	asks    atomic.Bool // a program waits for the person
	silent  atomic.Bool // typed keys are not shown (stty -echo)
	end     func()      // ends the shell, as SIGKILL does; nil: nothing does
}

// Limits of the resources that a command may use in the server.
const (
	maxFrames     = 6000 // limit of Go's stack frames, for a function that calls itself
	maxGoroutines = 3000 // limit of goroutines, for a program that starts itself again and again
)

// unreal is the folder for the pipes of process substitutions, which the interpreter would create on the real disk. No
// file can be created in it.
const unreal = "/dev/null/pipes"

// environ is the environment that a shell starts with. It also returns users' home folders, which the interpreter would
// otherwise look up on the real machine.
type environ struct{ vars map[string]string }

var homes = map[string]string{"root": "/root", "www-data": "/var/www", "nobody": "/nonexistent"}

func (e environ) Get(name string) expand.Variable {
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		if home, known := homes[user]; known {
			return expand.Variable{Set: true, Kind: expand.String, Str: home}
		}
		return expand.Variable{Set: true, Kind: expand.String, Str: "~" + user}
	}
	v, ok := e.vars[name]
	return expand.Variable{Set: ok, Exported: ok, Kind: expand.String, Str: v}
}

func (e environ) Each(yield func(string, expand.Variable) bool) {
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		if name != "TMPDIR" && !yield(name, e.Get(name)) {
			return
		}
	}
}

// base returns the environment of each login.
func base() map[string]string {
	return map[string]string{"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "LANG": "C.UTF-8",
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "xterm-256color"}
}

// runner returns an interpreter that reaches only the files, folders and programs of the simulated machine.
func (s *shell) runner(vars map[string]string, dir string, in *os.File, out, errs io.Writer) (*interp.Runner, error) {
	vars = maps.Clone(vars)
	vars["UID"], vars["EUID"], vars["GID"], vars["TMPDIR"] = "0", "0", "0", unreal
	hidden := hideTMPDIR
	if _, ok := vars["HOME"]; !ok { // the interpreter would take that of the real machine
		vars["HOME"], hidden = home, hideBoth
	}
	var stdin io.Reader
	if in != nil {
		stdin = in
	}
	r, err := interp.New(interp.Env(environ{vars}), interp.Dir("/"), interp.StdIO(stdin, out, errs),
		interp.CallHandler(s.called), interp.OpenHandler(s.open), interp.ReadDirHandler2(s.readDir),
		interp.StatHandler(s.stat), interp.AccessHandler(s.access),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }))
	if err != nil {
		return nil, err
	}
	r.Dir = dir // a folder of the machine; interp.Dir would look at the real disk
	r.Reset()
	return r, r.Run(context.Background(), hidden)
}

// This hides variables from the commands that the interpreter has already read.
var (
	hideTMPDIR = must(syntax.NewParser().Parse(strings.NewReader("unset TMPDIR"), ""))
	hideBoth   = must(syntax.NewParser().Parse(strings.NewReader("unset TMPDIR HOME"), ""))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ours replaces built-in commands that the interpreter lacks, or that would read the real disk.
var ours = map[string]bool{"pwd": true, "type": true, "command": true, "builtin": true, "source": true, ".": true,
	"kill": true, "umask": true, "ulimit": true, "jobs": true, "history": true, "hash": true, "bg": true, "fg": true}

// called passes a command that the interpreter must not execute itself to the machine.
func (s *shell) called(ctx context.Context, args []string) ([]string, error) {
	if runtime.Callers(maxFrames, make([]uintptr, 1)) > 0 {
		return nil, errors.New("maximum function nesting level exceeded")
	}
	if runtime.NumGoroutine() > maxGoroutines {
		return nil, errors.New("fork: retry: Resource temporarily unavailable")
	}
	s.asks.Store(args[0] == "read" && s.isTTY(interp.HandlerCtx(ctx).Stdin))
	if args[0] == "test" || args[0] == "[" {
		return s.terminals(interp.HandlerCtx(ctx), args), nil
	}
	if args[0] == "trap" {
		return trapped(args), nil
	}
	if ours[args[0]] {
		return append([]string{"/usr/bin/" + args[0]}, args[1:]...), nil
	}
	return args, nil
}

// trapped leaves out signals, which never arrive here: even a command that ignores them can be ended.
func trapped(args []string) []string {
	if len(args) < 3 {
		return args
	}
	kept := slices.DeleteFunc(slices.Clone(args[2:]),
		func(s string) bool { return s != "EXIT" && s != "ERR" && s != "0" })
	for i, s := range kept {
		if s == "0" {
			kept[i] = "EXIT"
		}
	}
	if len(kept) == 0 {
		return []string{":"}
	}
	return append([]string{args[0], args[1]}, kept...)
}

// terminals evaluates -t, for which the interpreter would ask the real machine.
func (s *shell) terminals(hc interp.HandlerContext, args []string) []string {
	at := slices.Index(args, "-t")
	if at < 0 || at+1 == len(args) {
		return args
	}
	var is bool
	switch args[at+1] {
	case "0":
		is = s.isTTY(hc.Stdin)
	case "1":
		is = s.screen != nil && hc.Stdout == s.screen
	case "2":
		is = s.screen != nil && hc.Stderr == s.screen
	}
	args = slices.Clone(args)
	args[at], args[at+1] = "-n", map[bool]string{true: "yes"}[is]
	return args
}

func (s *shell) isTTY(in io.Reader) bool { return s.tty != nil && in == io.Reader(s.tty) }

func (s *shell) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	switch abs := resolve(hc.Dir, name); abs {
	case "/dev/stdout", "/dev/tty":
		return pass{hc.Stdout}, nil
	case "/dev/stderr":
		return pass{hc.Stderr}, nil
	default:
		f, err := s.machine.disk.open(abs, flag, perm)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: plain(err)}
		}
		return f, nil
	}
}

// pass is an opened device such as /dev/stdout: it writes to the command's stream, and reads nothing.
type pass struct{ io.Writer }

func (pass) Read([]byte) (int, error) { return 0, io.EOF }
func (pass) Close() error             { return nil }

func (s *shell) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	return s.machine.disk.readDir(resolve(interp.HandlerCtx(ctx).Dir, name))
}

func (s *shell) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	abs := resolve(interp.HandlerCtx(ctx).Dir, name)
	if follow {
		return s.machine.disk.stat(abs)
	}
	return s.machine.disk.lstat(abs)
}

func (s *shell) access(ctx context.Context, name string, mode interp.AccessMode) error {
	info, err := s.stat(ctx, name, true)
	if err == nil && mode&interp.AccessExec != 0 && info.Mode()&0o111 == 0 {
		return fs.ErrPermission
	}
	return err
}

// exec executes a program of the machine. No other programs exist.
func (s *shell) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	c := &call{Context: ctx, shell: s, disk: s.machine.disk, hc: hc, name: path.Base(args[0]), args: args[1:],
		dir: hc.Dir, in: hc.Stdin, out: hc.Stdout, err: hc.Stderr}
	if !s.busy.begin() {
		return context.Canceled
	}
	defer s.busy.end()
	if in, ok := hc.Stdin.(*os.File); ok {
		defer interruptible(ctx, in)()
	}
	code := c.program(args[0])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.ended != nil {
		return c.ended
	}
	if code != 0 {
		return interp.ExitStatus(code)
	}
	return nil
}

// program finds the program and executes it.
func (c *call) program(name string) int {
	if dir := path.Dir(resolve(c.dir, name)); strings.Contains(name, "/") && !slices.Contains(binaries, dir) {
		return c.script(resolve(c.dir, name))
	}
	run, ok := programs[c.name]
	if !ok || !c.shell.machine.has(c.name) {
		return c.fail(127, "command not found")
	}
	return run(c)
}

var binaries = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}

// script runs a file as a script of the shell.
func (c *call) script(abs string) int {
	info, err := c.disk.stat(abs)
	switch {
	case err != nil:
		return c.fail(127, "%s", reason(err))
	case info.IsDir():
		return c.fail(126, "Is a directory")
	case info.Mode()&0o111 == 0:
		return c.fail(126, "Permission denied")
	}
	return c.interpret(abs, c.args)
}

// maxScript is the maximum size of a script file.
const maxScript = 1 << 20

func (c *call) interpret(abs string, params []string) int {
	f, err := c.disk.open(abs, os.O_RDONLY, 0)
	if err != nil {
		return c.fail(127, "%s", reason(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScript))
	if err != nil || strings.ContainsRune(string(text), 0) {
		return c.fail(126, "cannot execute binary file")
	}
	return c.subshell(string(text), abs, params)
}

// subshell runs a script in a separate shell with the exported variables.
func (c *call) subshell(text, name string, params []string) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), name)
	if err != nil {
		fmt.Fprintln(c.err, err)
		return 2
	}
	in, _ := c.in.(*os.File)
	r, err := c.shell.runner(c.exported(), c.dir, in, c.out, c.err)
	if err == nil {
		err = interp.Params(append([]string{"--"}, params...)...)(r)
	}
	if err != nil {
		return c.fail(126, "%v", err)
	}
	return c.code(r.Run(c, file))
}

// code returns the exit code for a runner's error.
func (c *call) code(err error) int { return exitCode(err, c.err) }

func exitCode(err error, errs io.Writer) int {
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case !errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "bash:", err)
	}
	return 1
}

func (c *call) exported() map[string]string {
	vars := map[string]string{}
	for name, v := range c.hc.Env.Each {
		if v.Exported && v.Kind == expand.String {
			vars[name] = v.Str
		}
	}
	return vars
}
