package demohost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// console is a person's own shell: a prompt, line editing, and programs that receive keys while they run. It outlives
// its viewers.
type console struct {
	host   *Host
	shell  *shell
	screen *screen
	keys   *typeahead // keys that were typed at the prompt
	term   *term.Terminal
	size   window
	ctx    context.Context // ends with it
	cancel context.CancelFunc
	over   chan struct{}
	code   int

	mu        sync.Mutex
	feed      *os.File    // the running program's input; nil: the prompt is shown
	interrupt func()      // ends the running program
	expiry    *time.Timer // ends it without viewers; nil: no viewer has left yet
}

func (h *Host) openConsole(size supervisor.Size) *console {
	ctx, cancel := context.WithCancel(h.ctx)
	keys := newTypeahead()
	c := &console{host: h, screen: &screen{}, keys: keys, ctx: ctx, cancel: cancel, over: make(chan struct{})}
	c.shell = &shell{machine: h.machine, size: c.size.get, end: cancel}
	c.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, c.screen}, "")
	c.resize(size)
	h.work(func() {
		defer close(c.over)
		defer cancel()
		stop := context.AfterFunc(ctx, keys.close)
		defer stop()
		c.code = c.serve(ctx)
	})
	return c
}

func (c *console) resize(s supervisor.Size) {
	if s.Cols < 1 || s.Rows < 1 || s.Cols > 1000 || s.Rows > 1000 {
		s = supervisor.Size{Cols: 80, Rows: 24}
	}
	c.size.set(s)
	_ = c.term.SetSize(s.Cols, s.Rows) // the screen takes all that is written
}

// serve reads lines and executes them until the person leaves.
func (c *console) serve(ctx context.Context) int {
	var done func()
	c.shell.pid, done = c.host.machine.started("-bash", c.cancel)
	defer done()
	out := crlf{c.screen}
	r, err := c.shell.runner(base(), home, nil, out, out)
	if err != nil {
		return 1
	}
	motd, _ := c.host.machine.disk.readFile("/etc/motd") // it may have been deleted
	_, _ = out.Write(motd)                               // the screen takes all that is written
	typed := ""
	for ctx.Err() == nil {
		c.term.SetPrompt(prompt(r.Dir, typed != ""))
		line, err := c.term.ReadLine()
		if err != nil {
			_, _ = io.WriteString(out, "logout\n") // as above
			return 0
		}
		typed += line + "\n"
		file, err := syntax.NewParser().Parse(strings.NewReader(typed), "bash")
		if syntax.IsIncomplete(err) && len(typed) < maxScript {
			continue
		}
		typed = ""
		if err != nil {
			_, _ = io.WriteString(out, err.Error()+"\n") // as above
			continue
		}
		if code, left := c.carryOut(ctx, r, file); left {
			return code
		}
	}
	return 1
}

// expire ends the console after idle, unless a viewer attaches before.
func (c *console) expire(idle time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.screen.alone() || c.ctx.Err() != nil {
		return
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.expiry = time.AfterFunc(idle, func() {
		if c.screen.alone() {
			c.cancel()
		}
	})
}

// stay ends the wait of expire, because a viewer has attached again.
func (c *console) stay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expiry != nil {
		c.expiry.Stop()
	}
}

func prompt(dir string, more bool) string {
	if more {
		return "> "
	}
	if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || rest[0] == '/') {
		dir = "~" + rest
	}
	return user + "@" + hostname + ":" + dir + "# "
}

// carryOut executes one line with its own terminal, and reports whether it was the last line.
func (c *console) carryOut(ctx context.Context, r *interp.Runner, file *syntax.File) (code int, left bool) {
	in, feed, err := os.Pipe()
	if err != nil {
		return 1, true
	}
	lined, cancel := context.WithCancel(ctx) // what it leaves in the background continues, until the shell ends
	c.program(feed, cancel)
	defer func() {
		c.program(nil, nil)
		unread := make([]byte, maxTypeahead)
		if n, _ := in.Read(unread); n > 0 { // typed for what comes next; the other end is closed
			c.keys.add(bytes.ReplaceAll(unread[:n], []byte("\n"), []byte("\r")))
		}
		_ = in.Close() // a pipe
	}()
	out := crlf{c.screen}
	if err := interp.StdIO(in, out, out)(r); err != nil {
		return 1, true
	}
	for _, stmt := range file.Stmts {
		err := r.Run(lined, stmt)
		if lined.Err() != nil {
			break
		}
		code = exitCode(err, out)
		if r.Exited() {
			var status interp.ExitStatus
			return code, err == nil || errors.As(err, &status)
		}
	}
	return code, false
}

// program sets the program that receives keys.
func (c *console) program(feed *os.File, interrupt func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed != nil {
		_ = c.feed.Close() // a pipe
	}
	c.feed, c.interrupt = feed, interrupt
}

// press handles typed keys.
func (c *console) press(p []byte) {
	for len(p) > 0 {
		c.mu.Lock()
		n := c.toProgram(p)
		c.mu.Unlock()
		if n == 0 {
			n = c.toPrompt(p)
		}
		p = p[n:]
	}
}

// toProgram passes typed keys to a running program.
func (c *console) toProgram(p []byte) int {
	if c.feed == nil {
		return 0
	}
	return keyboard{shell: c.shell, feed: c.feed, screen: c.screen, interrupt: c.interrupt}.press(p)
}

// toPrompt edits the line. ^C discards the line and begins a new one.
func (c *console) toPrompt(p []byte) int {
	if p[0] == ctrlC {
		c.keys.add([]byte{ctrlE, ctrlU, '\r'})
		return 1
	}
	n := bytes.IndexByte(p, ctrlC)
	if n < 0 {
		n = len(p)
	}
	c.keys.add(p[:n])
	return n
}
