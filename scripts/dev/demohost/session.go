package demohost

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// session is one channel of a connection: either one command line or an interactive shell.
type session struct {
	host    *Host
	channel ssh.Channel
	pty     bool
	size    window
	resized chan supervisor.Size
}

// window is the size of a terminal, which may change while it is used.
type window struct{ atomic.Int64 }

func (w *window) set(s supervisor.Size) { w.Store(int64(s.Cols&0xFFFF)<<16 | int64(s.Rows&0xFFFF)) }

func (w *window) get() (cols, rows int) {
	v := w.Load()
	return int(v >> 16), int(v & 0xFFFF)
}

func (s *session) serve(requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancelCause(s.host.ctx)
	defer cancel(nil)
	s.resized = make(chan supervisor.Size, 1)
	begun := make(chan struct{})
	started := false
	var begin func()
	for r := range requests {
		ok := false
		switch r.Type {
		case "pty-req":
			var p struct {
				Term                   string
				Cols, Rows, Wide, High uint32
				Modes                  string
			}
			if ok = ssh.Unmarshal(r.Payload, &p) == nil; ok {
				s.pty = true
				s.size.set(supervisor.Size{Cols: int(p.Cols), Rows: int(p.Rows)})
			}
		case "window-change":
			if len(r.Payload) >= 8 {
				size := supervisor.Size{Cols: int(binary.BigEndian.Uint32(r.Payload)),
					Rows: int(binary.BigEndian.Uint32(r.Payload[4:]))}
				s.size.set(size)
				s.tell(size)
			}
		case "signal":
			var name struct{ Name string }
			if ok = ssh.Unmarshal(r.Payload, &name) == nil; ok {
				cancel(signalled(name.Name))
			}
		case "exec", "shell":
			var line struct{ Line string }
			if started || r.Type == "exec" && ssh.Unmarshal(r.Payload, &line) != nil {
				break
			}
			ok, started = true, true
			begin = func() { s.end(s.begin(ctx, r.Type, line.Line)) }
		case "env":
			ok = true // the client's environment variables are ignored
		}
		if r.WantReply {
			_ = r.Reply(ok, nil) // the client is gone: the channel ends with it
		}
		if begin != nil { // after the answer, which must come before the end
			go func(begin func()) { defer close(begun); begin() }(begin)
			begin = nil
		}
	}
	cancel(errHangUp)
	if started {
		<-begun
	}
	_ = s.channel.Close() // it may be closed
}

func (s *session) tell(size supervisor.Size) {
	select {
	case <-s.resized:
	default:
	}
	s.resized <- size
}

// end reports the exit of the request to the client, which may be gone.
func (s *session) end(code int) {
	_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
	_ = s.channel.Close()
}

func (s *session) begin(ctx context.Context, kind, line string) int {
	if kind == "shell" {
		return s.person(ctx)
	}
	if code, known := s.keeper(ctx, line); known {
		return code
	}
	return s.line(ctx, line)
}

// line executes a line as ssh HOST LINE does.
func (s *session) line(ctx context.Context, line string) int {
	in, feed, err := os.Pipe()
	if err != nil {
		return 255
	}
	defer in.Close()
	s.host.work(func() {
		_, _ = io.Copy(feed, s.channel) // it ends with the client's input, or with the program
		_ = feed.Close()
	})
	var out, errs io.Writer = s.channel, s.channel.Stderr()
	if s.pty {
		out = crlf{s.channel}
		errs = out
	}
	sh := &shell{machine: s.host.machine}
	if s.pty {
		sh.size = s.size.get
	}
	r := sh.run(ctx, work{command: line, vars: base(), dir: home, in: in, out: out, errs: errs})
	return r.code
}

// crlf converts line ends as a terminal does.
type crlf struct{ io.Writer }

func (w crlf) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, strings.ReplaceAll(string(p), "\n", "\r\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}
