package supervisor

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// hundredths formats a duration for the script, in hundredths of a second.
func hundredths(d time.Duration) string { return strconv.FormatInt(int64(d/(10*time.Millisecond)), 10) }

// Start starts a command and copies its output to out until it has ended. This package's error values describe the
// known state of the command. After any other error, the command may have started, unless the connection marks the
// error as transient. If ctx ends or out fails, the command continues.
func (c *Client) Start(ctx context.Context, s Start, out io.Writer) (Result, error) {
	args, err := c.arguments(s)
	if err != nil {
		return Result{}, err
	}
	mark := newMark()
	args = append(args, "mark="+mark)
	request := func() io.Reader { return strings.NewReader(s.request(mark)) }
	x := Exec{}
	switch {
	case c.Facts.Home == "" && !s.Plain:
		return Result{}, ErrHome
	case c.Facts.Home == "":
		x.Line, x.Stdin = bare("bare", args...), io.MultiReader(strings.NewReader(script), request())
	case c.Facts.PTY:
		x.Line, x.Stdin = c.line("start", args...), request()
	default: // the terminal belongs to the channel, and its input is the user's
		staged := newMark()
		if err := c.stage(ctx, staged, request()); err != nil {
			return Result{}, err
		}
		x.Line, x.PTY = c.line("start", append(args, "pty=channel", "staged="+staged)...), &s.Size
	}
	end, err := c.exec(ctx, x, mark, out, s.Asks)
	if err != nil {
		return Result{}, err
	}
	return result(end)
}

// request returns the script's input: lines with the directory and the readable paths, and then the command.
func (s *Start) request(mark string) string {
	var b strings.Builder
	b.WriteString(octal(s.Cwd) + "\n")
	if s.Real != "" {
		b.WriteString(octal(s.Real) + "\n")
	}
	if s.Pin != (Pin{}) {
		b.WriteString(octal(s.Pin.Name) + "\n" + octal(s.Pin.File) + "\n")
	}
	for _, folder := range s.Opens.Within {
		b.WriteString(octal(folder) + "\n")
	}
	for _, path := range s.Opens.Looks {
		b.WriteString(octal(path) + "\n")
	}
	for _, p := range s.Opens.Paths {
		b.WriteString(octal(p.Name) + " " + octal(p.Shown) + "\n")
	}
	return b.String() + s.Command + mark
}

func (c *Client) stage(ctx context.Context, name string, request io.Reader) error {
	mark := newMark()
	end, err := c.exec(ctx, Exec{Line: c.line("stage", "staged="+name, "mark="+mark), Stdin: request}, mark,
		io.Discard, nil)
	if err == nil && end != "over" {
		err = ErrHome
	}
	return err
}

// arguments checks a command and returns the script's arguments, which do not include the command's text.
func (c *Client) arguments(s Start) ([]string, error) {
	if s.Handle == "" {
		s.Handle = c.Handle()
	}
	args, err := handle(s.Handle)
	if err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	if s.Size == (Size{}) {
		s.Size = Size{Cols: 80, Rows: 24}
	}
	args = append(args, "id="+s.ID, "grammar="+string(s.Grammar), "limit="+hundredths(s.Limit),
		"term_after="+hundredths(c.Times.Term), "kill_after="+hundredths(c.Times.Kill),
		"quiet="+hundredths(c.Times.Quiet), "patience="+hundredths(c.Times.Patience),
		fmt.Sprintf("rows=%d", s.Size.Rows), fmt.Sprintf("cols=%d", s.Size.Cols))
	if s.Terminal != "" {
		args = append(args, "term="+s.Terminal)
	}
	if s.Plain {
		args = append(args, "plain=1")
	}
	if s.Real != "" {
		args = append(args, "placed=1")
	}
	if s.Pin != (Pin{}) {
		args = append(args, "pinned=1")
	}
	return append(args, c.openArguments(s.Opens)...), nil
}

// check returns the first reason why the script cannot run the command.
func (c *Client) check(s Start) error {
	if err := checkID(s.ID); err != nil {
		return err
	}
	switch {
	case s.Terminal != "" && !name.MatchString(s.Terminal):
		return fmt.Errorf("supervisor: %q cannot be the name of a terminal", s.Terminal)
	case s.Cwd != "" && !path.IsAbs(s.Cwd) || strings.Contains(s.Cwd+s.Real, "\x00"):
		return fmt.Errorf("supervisor: %q is not the path of a directory", s.Cwd)
	case strings.Contains(s.Command, "\x00"):
		return fmt.Errorf("supervisor: a command cannot contain a NUL")
	case s.Grammar != shell.Bash && s.Grammar != shell.POSIX:
		return fmt.Errorf("supervisor: unknown shell grammar %q", s.Grammar)
	case s.Limit <= 0:
		return fmt.Errorf("supervisor: a command needs a limit")
	case !c.Opens(&s.Opens) || len(s.Opens.Paths)+len(s.Opens.Looks) > 0 && !s.Plain:
		return fmt.Errorf("supervisor: the host cannot open these paths for a command")
	}
	return nil
}

// openArguments returns the script's arguments for the paths that it opens for a command.
func (c *Client) openArguments(o Opens) (args []string) {
	if n := len(o.Paths); n > 0 {
		args = append(args, fmt.Sprintf("opens=%d", n))
	}
	if len(o.Within) > 0 || len(o.Paths) > 0 {
		args = append(args, fmt.Sprintf("within=%d", len(o.Within)))
	}
	if len(o.Paths) > 0 || o.Git != "" {
		args = append(args, "open_after="+hundredths(c.Times.Open))
	}
	if n := len(o.Looks); n > 0 {
		args = append(args, fmt.Sprintf("looks=%d", n))
	}
	if o.Files {
		args = append(args, "files=1")
	}
	if o.Walks {
		args = append(args, "walks=1")
	}
	if o.Private {
		args = append(args, "private=1")
	}
	if o.Git != "" {
		args = append(args, "git="+string(o.Git))
	}
	return args
}

// Opens reports whether the host can open the paths. The script stores them as lines and in a sed script, so some
// characters are not allowed.
func (c *Client) Opens(o *Opens) bool {
	names := slices.Concat(o.Within, o.Looks)
	for _, p := range o.Paths {
		names = append(names, p.Name, p.Shown)
	}
	odd := func(name string) bool { return name == "" || strings.ContainsAny(name, "\x00\n\\&|") }
	return (len(o.Paths) == 0 || c.Facts.Proc && len(o.Paths) <= MaxOpens) && !slices.ContainsFunc(names, odd)
}

// octal encodes a path so that the script can read it as one line.
func octal(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c == '\\' || c >= 0x7F {
			fmt.Fprintf(&b, `\0%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// An AttachOption is an option of [Client.Attach].
type AttachOption func(*attach)

type attach struct {
	args []string
	asks func(bool)
}

// Asks calls f when the command begins to wait for input, and when it stops waiting.
func Asks(f func(asking bool)) AttachOption { return func(a *attach) { a.asks = f } }

// Hold declares that a person who can type is attached, so that a command may wait for input without a limit.
func Hold() AttachOption { return func(a *attach) { a.args = append(a.args, "hold=1") } }

// Attach copies a command's output to out, starting at byte from, until the command has ended. It returns the same
// errors as [Client.Start]. If Facts.PTY is false, the host keeps no output.
func (c *Client) Attach(ctx context.Context, id string, from int64, out io.Writer, options ...AttachOption) (
	Result, error) {
	var a attach
	for _, o := range options {
		o(&a)
	}
	end, err := c.verb(ctx, "attach", id, nil, out, a.asks, append(a.args, fmt.Sprintf("from=%d", from))...)
	if err != nil {
		return Result{}, err
	}
	return result(end)
}

// verb runs a verb that concerns one command.
func (c *Client) verb(ctx context.Context, verb, id string, in io.Reader, out io.Writer, asks func(bool),
	args ...string) (string, error) {
	if err := checkID(id); err != nil {
		return "", err
	}
	if c.Facts.Home == "" {
		return "", ErrHome
	}
	mark := newMark()
	args = append(args, "id="+id, "mark="+mark)
	return c.exec(ctx, Exec{Line: c.line(verb, args...), Stdin: in}, mark, out, asks)
}

// Input sends typed bytes to a running command. The bytes are neither stored nor part of the output, unless the
// command's terminal echoes them. The error is ErrEnded if the command has ended, and ErrOther if it has not started.
func (c *Client) Input(ctx context.Context, id string, typed []byte) error {
	end, err := c.verb(ctx, "input", id, strings.NewReader(string(typed)), io.Discard, nil)
	if err == nil && end != "over" {
		_, err = result(end)
	}
	return err
}

// Stop stops a command in the same way as its time limit: ^C, then SIGTERM, then SIGKILL. It does not wait for the end.
// A command that has not started will never start. Stop does nothing to a command that has ended.
func (c *Client) Stop(ctx context.Context, id string) error {
	end, err := c.verb(ctx, "stop", id, nil, io.Discard, nil)
	if err == nil && end != "over" {
		err = fmt.Errorf("supervisor: the host answered %.40q", end)
	}
	return err
}

// Reconcile returns the state of a command that may have been started with the handle h. If never is true, a command
// that has not started will never start. Only the state Done comes with a Result.
func (c *Client) Reconcile(ctx context.Context, id, h string, never bool) (State, Result, error) {
	args, err := handle(h)
	if err != nil {
		return "", Result{}, err
	}
	if never {
		args = append(args, "never=1")
	}
	var out strings.Builder
	end, err := c.verb(ctx, "settle", id, nil, &out, nil, args...)
	if err != nil {
		return "", Result{}, err
	}
	state := State(strings.TrimPrefix(strings.TrimSpace(out.String()), "state="))
	switch state {
	case Done:
		r, err := result(end)
		return Done, r, err
	case Running, Lost, Absent, Never, Unknown:
		return state, Result{}, nil
	}
	return "", Result{}, fmt.Errorf("supervisor: the host answered %.40q", out.String())
}
