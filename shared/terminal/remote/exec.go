package remote

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// conn is the connection that [Pool.Get] returns: the verified one, and further ones when it has no free channel.
type conn struct {
	pool  *Pool
	group *group
	host  *terminal.Host
	open  Secret
	via   []Hop
	first *link
}

// Recall implements [supervisor.Memory]. The value is kept with the SSH connection, which ends if the host restarts.
func (c *conn) Recall() any {
	c.first.mu.Lock()
	defer c.first.mu.Unlock()
	return c.first.known
}

// Remember implements [supervisor.Memory].
func (c *conn) Remember(v any) {
	c.first.mu.Lock()
	defer c.first.mu.Unlock()
	c.first.known = v
}

// Exec runs a line as [supervisor.Conn] describes. When ctx ends, Exec closes the channel; the effect of that on the
// command depends on the host. Exec reads x.Stdin until it ends, and does not wait for a Read in progress when it
// returns. Nothing is written to x.Stdout and x.Stderr after that.
func (c *conn) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	for {
		l, err := c.channel(ctx)
		if err != nil {
			return 0, err
		}
		ch, requests, err := l.conn.OpenChannel("session", nil)
		var refused *ssh.OpenChannelError
		switch {
		case err == nil:
			return c.run(ctx, l, ch, requests, x)
		case errors.As(err, &refused) && c.pool.fewer(c.group, l):
			continue // the host allows fewer channels on one connection
		}
		c.pool.done(c.group, l)
		return 0, unreachable("channel", err)
	}
}

// channel reserves a channel of the first connection, or of another connection if the first one has no free channel.
func (c *conn) channel(ctx context.Context) (*link, error) {
	p, g := c.pool, c.group
	for {
		if !c.first.alive() {
			return nil, unreachable("channel", nil)
		}
		p.mu.Lock()
		for _, l := range append([]*link{c.first}, g.links...) {
			if l.used < l.most && l.alive() {
				l.used++
				p.mu.Unlock()
				return l, nil
			}
		}
		had, changed := len(g.links), g.changed
		p.mu.Unlock()
		if had < maxLinks {
			if _, err := p.add(ctx, c, had); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, unreachable("channel", context.Cause(ctx))
		}
	}
}

// fewer records that the host refused a further channel of a connection. It reports whether the connection has other
// channels.
func (p *Pool) fewer(g *group, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.used < 2 {
		return false
	}
	l.used--
	l.most = l.used
	g.wake()
	return true
}

// done frees a channel.
func (p *Pool) done(g *group, l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.used--
	g.wake()
}

// run runs a line in a channel. Nothing happens on the host before the request is sent.
func (c *conn) run(ctx context.Context, l *link, ch ssh.Channel, requests <-chan *ssh.Request, x supervisor.Exec,
) (int, error) {
	exit, ended := awaitExit(requests)
	go func() { // the host may end a channel later than it is closed here
		<-ended
		c.pool.done(c.group, l)
	}()
	defer func() { _ = ch.Close() }() // the host may have closed it
	stop := context.AfterFunc(ctx, func() { _ = ch.Close() })
	defer stop()
	if x.PTY != nil {
		if ok, err := ch.SendRequest("pty-req", true, terminalOf(*x.PTY)); err != nil || !ok {
			return 0, notRun(ctx, "a terminal", err)
		}
	}
	switch ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Line string }{x.Line})); {
	case err != nil:
		return 0, broken(cause(ctx, err))
	case !ok:
		return 0, notRun(ctx, "a command", nil)
	}
	return c.follow(ctx, l, ch, exit, ended, x)
}

// follow carries a command's streams until it has ended.
func (c *conn) follow(ctx context.Context, l *link, ch ssh.Channel, exit *int, ended <-chan struct{}, x supervisor.Exec,
) (int, error) {
	failed := make(chan error, 2)
	out, errs := &gate{w: x.Stdout}, &gate{w: x.Stderr}
	defer out.shut()
	defer errs.shut()
	over := make(chan struct{})
	defer close(over)
	go feed(ch, x.Stdin)
	if x.Resize != nil {
		go resize(ch, x.Resize, over)
	}
	var copies sync.WaitGroup
	copies.Go(func() { copyTo(out, ch, failed) })
	copies.Go(func() { copyTo(errs, ch.Stderr(), failed) })
	all := make(chan struct{})
	go func() {
		copies.Wait()
		<-ended
		close(all)
	}()
	select {
	case <-all:
	case err := <-failed: // the reader of the output wants no more
		return 0, err
	case <-ctx.Done():
		return 0, broken(context.Cause(ctx))
	}
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	if *exit < 0 {
		return 0, broken(errors.New("no exit code"))
	}
	l.hear()
	return *exit, nil
}

// cause returns the reason why ctx ended, or err if it has not.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// notRun returns the error for a host that refused a request that must precede the command. Nothing was run.
func notRun(ctx context.Context, what string, err error) error {
	if err != nil || ctx.Err() != nil {
		return unreachable("session", cause(ctx, err))
	}
	return tool.Transient(fault.New(fault.Tool, CodeRefused,
		"The host did not open %s for this user. Nothing was run.", what))
}

// signals maps the signal names of RFC 4254, section 6.10, to their numbers.
var signals = map[string]syscall.Signal{"ABRT": 6, "ALRM": 14, "FPE": 8, "HUP": 1, "ILL": 4, "INT": 2, "KILL": 9,
	"PIPE": 13, "QUIT": 3, "SEGV": 11, "TERM": 15, "USR1": 10, "USR2": 12}

// awaitExit serves the host's requests in a channel. It refuses all of them except the reports that a command has
// ended. The exit code may be read once ended is closed; it is negative if the host reported none.
func awaitExit(requests <-chan *ssh.Request) (exit *int, ended <-chan struct{}) {
	code, over := -1, make(chan struct{})
	go func() {
		defer close(over)
		for r := range requests {
			switch r.Type {
			case "exit-status":
				var status struct{ Code uint32 }
				if ssh.Unmarshal(r.Payload, &status) == nil {
					code = int(status.Code & 0xff)
				}
			case "exit-signal":
				var by struct {
					Signal     string
					CoreDumped bool
					Error      string
					Lang       string
				}
				if ssh.Unmarshal(r.Payload, &by) == nil {
					code = 128 + int(signals[by.Signal])
				}
			}
			if r.WantReply {
				_ = r.Reply(false, nil) // a broken connection ends the loop
			}
		}
	}()
	return &code, over
}

// terminalOf returns the request for a terminal of this size.
func terminalOf(s supervisor.Size) []byte {
	return ssh.Marshal(struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}{"xterm-256color", uint32(max(1, s.Cols)), uint32(max(1, s.Rows)), 0, 0, "\x00"})
}

// resize sends the terminal's sizes to the host until over is closed.
func resize(ch ssh.Channel, sizes <-chan supervisor.Size, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case s, more := <-sizes:
			if !more {
				return
			}
			size := struct{ Cols, Rows, Width, Height uint32 }{uint32(max(1, s.Cols)), uint32(max(1, s.Rows)), 0, 0}
			if _, err := ch.SendRequest("window-change", false, ssh.Marshal(size)); err != nil {
				return // the command has ended
			}
		}
	}
}

// feed sends a command its input.
func feed(ch ssh.Channel, in io.Reader) {
	if in != nil {
		_, _ = io.Copy(ch, in) // a command need not read all of its input
	}
	_ = ch.CloseWrite() // it may have ended
}

// copyTo copies output and reports a writer that failed. The end of the channel is detected elsewhere.
func copyTo(g *gate, from io.Reader, failed chan<- error) {
	_, _ = io.Copy(g, from) // a broken channel is detected by its missing exit code
	if g.failed != nil {
		failed <- g.failed
	}
}

// gate is a writer that can be shut. A write to a shut gate is dropped.
type gate struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
	failed error
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.w == nil {
		return len(b), nil
	}
	n, err := g.w.Write(b)
	g.failed = err
	return n, err
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
