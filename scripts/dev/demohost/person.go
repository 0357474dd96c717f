package demohost

import (
	"context"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// person serves a shell to a plain client such as OpenSSH's ssh.
func (s *session) person(ctx context.Context) int {
	if !s.pty {
		text, err := io.ReadAll(io.LimitReader(s.channel, maxScript))
		if err != nil {
			return 1
		}
		return s.line(ctx, string(text))
	}
	cols, rows := s.size.get()
	c := s.host.openConsole(supervisor.Size{Cols: cols, Rows: rows})
	defer func() { c.cancel(); <-c.over }()
	return s.look(ctx, c, s.channel, s.channel)
}

// look attaches a person to a console until they leave or the console ends.
func (s *session) look(ctx context.Context, c *console, in io.Reader, out io.Writer) int {
	c.stay()
	c.screen.show(out)
	defer c.screen.leave(out)
	gone := make(chan struct{})
	s.host.work(func() {
		defer close(gone)
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			c.press(buf[:n])
			if err != nil {
				return
			}
		}
	})
	for {
		select {
		case size := <-s.resized:
			c.resize(size)
		case <-c.over:
			return c.code
		case <-gone:
			return 0
		case <-ctx.Done():
			return 1
		}
	}
}

// console attaches a person to the shell of their terminal. The shell continues when they disconnect.
func (s *session) console(ctx context.Context, r request) {
	h, terminal := s.host, r.values["term"]
	c := h.console(terminal)
	if c != nil {
		c.resize(r.size())
	} else {
		c = h.openConsole(r.size())
		h.mu.Lock()
		other, full := h.consoles[terminal], len(h.consoles) >= maxConsoles
		if other == nil && !full {
			h.consoles[terminal] = c
		}
		h.mu.Unlock()
		if other != nil || full || terminal == "" {
			c.cancel()
			if c = other; c == nil {
				s.refuse(r, "home")
				return
			}
		}
	}
	if _, err := fmt.Fprintf(s.channel, "\n%s:begin\n", r.values["mark"]); err != nil {
		return
	}
	s.look(ctx, c, s.channel, s.channel)
	c.expire(r.hundredths("idle", 30*time.Minute))
	select {
	case <-c.over:
		_, _ = fmt.Fprintf(s.channel, "\n%s:over\n", r.values["mark"]) // the client is gone
	default:
	}
}

// maxConsoles is more than the terminals that one user may have.
const maxConsoles = 100

// console returns the shell of a terminal of the supervisor, or nil.
func (h *Host) console(terminal string) *console {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.consoles[terminal]
	if c == nil {
		return nil
	}
	select {
	case <-c.over:
		delete(h.consoles, terminal)
		return nil
	default:
		return c
	}
}

// closeConsole ends the shell of a terminal, and deletes the terminal's stored data.
func (h *Host) closeConsole(terminal string) {
	if c := h.console(terminal); c != nil {
		c.cancel()
		<-c.over
	}
	if terminal != "" {
		_ = h.machine.disk.root.RemoveAll(inside(path.Join(keeperDir, "terminals", terminal))) // it may not be there
	}
}
