package demohost

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// start starts another program, or one of the shell's own commands, with the same streams.
func (c *call) start(argv []string) int {
	if len(argv) == 0 {
		return 0
	}
	next := *c
	next.name, next.args, next.ended = path.Base(argv[0]), argv[1:], nil
	if interp.IsBuiltin(argv[0]) && !ours[argv[0]] {
		next.name, next.args = argv[0], argv[1:]
		code := own(&next)
		c.ended = next.ended
		return code
	}
	code := next.program(argv[0])
	c.ended = next.ended
	return code
}

// own runs one of the shell's built-in commands.
func own(c *call) int {
	err := c.hc.Builtin(c, append([]string{c.name}, c.args...))
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	c.ended = err // it also tells the shell how to continue
	return 1
}

func quiet(*call) int { return 0 }

func failing(*call) int { return 1 }

// bash runs a text or a file in a separate shell.
func bash(c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		if strings.HasSuffix(flag, "c") && !strings.HasPrefix(flag, "--") {
			if len(args) == 0 {
				return c.fail(2, "-c: option requires an argument")
			}
			name := c.name
			if len(args) > 1 {
				name = args[1]
			}
			return c.subshell(args[0], name, args[min(2, len(args)):])
		}
		if flag == "--version" {
			c.printf("GNU bash, as mvdan.cc/sh has it\n")
			return 0
		}
	}
	if len(args) == 0 {
		text, err := io.ReadAll(io.LimitReader(stoppable{c, c.stdin()}, maxScript))
		if err != nil {
			return c.fail(1, "%s", reason(err))
		}
		return c.subshell(string(text), c.name, nil)
	}
	info, err := c.disk.stat(c.abs(args[0]))
	if err != nil || info.IsDir() {
		return c.fail(127, "%s: No such file or directory", args[0])
	}
	return c.interpret(c.abs(args[0]), args[1:])
}

// sudo does nothing: every login is root.
func sudo(c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if slices.Contains([]string{"-u", "-g"}, args[0]) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return c.start(args)
}

func prefixed(c *call) int {
	args := c.args
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.Trim(args[0], "0123456789") == "") {
		args = args[1:]
	}
	return c.start(args)
}

func timeout(c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) < 2 {
		return c.fail(125, "missing operand")
	}
	d, ok := duration(args[0])
	if !ok {
		return c.fail(125, "invalid time interval '%s'", args[0])
	}
	ctx, cancel := context.WithTimeout(c.Context, d)
	defer cancel()
	if in, ok := c.in.(*os.File); ok {
		defer interruptible(ctx, in)()
	}
	inner := *c
	inner.Context = ctx
	code := inner.start(args[1:])
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return 124
	}
	c.ended = inner.ended
	return code
}

func duration(s string) (time.Duration, bool) {
	if s == "infinity" {
		return 1 << 62, true
	}
	unit := time.Second
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = n, u
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	return time.Duration(n * float64(unit)), err == nil && n >= 0 && n < 1e6
}

func sleep(c *call) int {
	total := time.Duration(0)
	for _, a := range c.args {
		d, ok := duration(a)
		if !ok {
			return c.fail(1, "invalid time interval '%s'", a)
		}
		total = max(total, total+d) // no overflow
	}
	if len(c.args) == 0 {
		return c.fail(1, "missing operand")
	}
	c.pause(total)
	return 0
}

// env prints the environment, or starts a program in a changed one.
func env(c *call) int {
	vars, args := c.exported(), c.args
	for len(args) > 0 && c.name == "env" {
		name, value, is := strings.Cut(args[0], "=")
		switch {
		case args[0] == "-i":
			vars = map[string]string{}
		case args[0] == "-u" && len(args) > 1:
			delete(vars, args[1])
			args = args[1:]
		case is && syntax.ValidName(name):
			vars[name] = value
		default:
			quoted := make([]string, len(args))
			for i, a := range args {
				q, err := syntax.Quote(a, syntax.LangBash)
				if err != nil {
					return c.fail(125, "%v", err)
				}
				quoted[i] = q
			}
			return c.inEnvironment(vars, strings.Join(quoted, " "))
		}
		args = args[1:]
	}
	if c.name == "printenv" && len(args) > 0 {
		v, ok := vars[args[0]]
		if !ok {
			return 1
		}
		c.printf("%s\n", v)
		return 0
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		c.printf("%s=%s\n", name, vars[name])
	}
	return 0
}

func (c *call) inEnvironment(vars map[string]string, text string) int {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "env")
	if err != nil {
		return c.fail(125, "%v", err)
	}
	in, _ := c.in.(*os.File)
	r, err := c.shell.runner(vars, c.dir, in, c.out, c.err)
	if err != nil {
		return c.fail(125, "%v", err)
	}
	return c.code(r.Run(c, file))
}

// lookUp finds a command as the shell would.
func (c *call) lookUp(name string) (where string, own, ok bool) {
	if interp.IsBuiltin(name) {
		return name, true, true
	}
	if _, there := programs[name]; there && c.shell.machine.has(name) {
		return "/usr/bin/" + name, false, true
	}
	if strings.Contains(name, "/") {
		if info, err := c.disk.stat(c.abs(name)); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return name, false, true
		}
		base := path.Base(name)
		if _, there := programs[base]; there && slices.Contains(binaries, path.Dir(name)) && c.shell.machine.has(base) {
			return name, false, true
		}
	}
	if info, err := c.disk.stat("/usr/local/bin/" + name); err == nil && info.Mode()&0o111 != 0 {
		return "/usr/local/bin/" + name, false, true
	}
	return "", false, false
}

func which(c *call) int {
	code := 0
	for _, name := range c.args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		where, own, ok := c.lookUp(name)
		_, program := programs[name]
		switch {
		case !ok && c.name == "type":
			code = c.fail(1, "%s: not found", name)
		case !ok, c.name == "which" && own && !program:
			code = 1
		case c.name == "type" && own:
			c.printf("%s is a shell builtin\n", name)
		case c.name == "type":
			c.printf("%s is %s\n", name, where)
		case own:
			c.printf("/usr/bin/%s\n", name)
		default:
			c.printf("%s\n", where)
		}
	}
	return code
}

// command runs a command without the shell's functions, or prints its path.
func command(c *call) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if strings.ContainsAny(args[0], "vV") {
			code := 0
			for _, name := range args[1:] {
				where, _, ok := c.lookUp(name)
				if !ok {
					code = 1
					continue
				}
				c.printf("%s\n", where)
			}
			return code
		}
		args = args[1:]
	}
	return c.start(args)
}

// source makes the shell execute a file of the machine.
func source(c *call) int {
	if len(c.args) == 0 {
		return c.fail(2, "filename argument required")
	}
	text, err := c.disk.readFile(c.abs(c.args[0]))
	if err != nil {
		return c.fail(1, "%s: %s", c.args[0], reason(err))
	}
	if len(text) > maxScript {
		return c.fail(1, "%s: File too large", c.args[0])
	}
	c.name, c.args = "eval", []string{string(text)}
	return own(c)
}

func workingDir(c *call) int {
	c.printf("%s\n", c.dir)
	return 0
}

func umask(c *call) int {
	if len(c.args) == 0 {
		c.printf("0022\n")
	}
	return 0
}

func tty(c *call) int {
	if c.shell.size == nil {
		c.printf("not a tty\n")
		return 1
	}
	c.printf("/dev/pts/0\n")
	return 0
}

func stty(c *call) int {
	if c.shell.size == nil {
		return c.fail(1, "'standard input': Inappropriate ioctl for device")
	}
	cols, rows := c.shell.size()
	switch {
	case slices.Contains(c.args, "-echo"):
		c.shell.silent.Store(true)
	case slices.Contains(c.args, "echo"), slices.Contains(c.args, "sane"):
		c.shell.silent.Store(false)
	case len(c.args) == 1 && c.args[0] == "size":
		c.printf("%d %d\n", rows, cols)
	case len(c.args) == 0 || c.args[0] == "-a":
		c.printf("speed 38400 baud; rows %d; columns %d;\n", rows, cols)
	}
	return 0
}
