package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Hop is a host on the way to another one, and its secret.
type Hop struct {
	Host *terminal.Host
	Open Secret
}

// tunnel connects to a server from the last host on the way. That host's network resolves the name, so only the text of
// the address can be checked here.
func (p *Pool) tunnel(ctx context.Context, to route) (net.Conn, error) {
	if d, ok := p.dialer.(interface{ Permits(string, int) bool }); ok && !d.Permits(to.host, to.port) {
		return nil, unreachable("tunnel", fs.ErrPermission)
	}
	last := to.via[len(to.via)-1]
	c, release, err := p.get(ctx, last.Host, last.Open, to.via[:len(to.via)-1])
	if err != nil {
		return nil, failedAt(last.Host, err)
	}
	t, err := c.tunnel(ctx, to)
	if err != nil {
		release()
		return nil, err
	}
	t.end = sync.OnceFunc(func() {
		go func() { // connections are also closed under the pool's lock
			p.done(c.group, t.link)
			release()
		}()
	})
	return t, nil
}

// tunnel opens a channel of the connection to a server, within the time limit for dialling.
func (c *conn) tunnel(ctx context.Context, to route) (*tunnelled, error) {
	ctx, cancel := context.WithTimeout(ctx, c.pool.times.Dial)
	defer cancel()
	l, err := c.channel(ctx)
	if err != nil {
		return nil, err
	}
	type opened struct {
		ssh.Channel
		err error
	}
	answer := make(chan opened, 1)
	go func() {
		ch, requests, err := l.conn.OpenChannel("direct-tcpip", ssh.Marshal(struct {
			Host       string
			Port       uint32
			Origin     string
			OriginPort uint32
		}{to.host, uint32(to.port), "127.0.0.1", 0}))
		if err == nil {
			go ssh.DiscardRequests(requests)
		}
		answer <- opened{ch, err}
	}()
	select {
	case a := <-answer:
		if a.err != nil {
			c.pool.done(c.group, l)
			return nil, notForwarded(c.host, a.err)
		}
		return &tunnelled{Channel: a.Channel, link: l}, nil
	case <-ctx.Done():
		go func() { // the host may answer later, or its connection ends
			if a := <-answer; a.err == nil {
				_ = a.Close() // it is not needed
			}
			c.pool.done(c.group, l)
		}()
		return nil, unreachable("tunnel", context.Cause(ctx))
	}
}

// notForwarded returns the error for a jump host that did not connect to a server.
func notForwarded(jump *terminal.Host, err error) error {
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) && refused.Reason == ssh.Prohibited {
		return &onTheWay{fault.New(fault.Tool, CodeRefused, "The jump host %s does not connect this user to the host "+
			"behind it (AllowTcpForwarding, PermitOpen, restrict). Nothing was sent to that host.", jump.Name)}
	}
	return unreachable("tunnel", err)
}

// onTheWay is an error of a jump host. The host behind it was not reached.
type onTheWay struct{ error }

func (e *onTheWay) Unwrap() error { return e.error }

// failedAt returns the error for a jump host that could not be used. It names the host if its user can fix the cause.
func failedAt(jump *terminal.Host, err error) error {
	var before *onTheWay
	refused := fault.Is(err, fault.Auth, CodeLogin) || fault.Is(err, fault.Policy, CodeKeyChanged)
	if errors.As(err, &before) || !refused {
		return err
	}
	f := fault.As(err)
	return &onTheWay{fault.New(f.Class, f.Code, "At the jump host %s: %s", jump.Name, f.Message)}
}

// tunnelled is a connection through a channel of another connection.
type tunnelled struct {
	ssh.Channel
	link *link
	end  func()

	mu    sync.Mutex
	timer *time.Timer
	late  bool // the deadline has passed
}

// Close implements [net.Conn].
func (t *tunnelled) Close() error {
	defer t.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	return t.Channel.Close()
}

func (t *tunnelled) Read(b []byte) (int, error) {
	n, err := t.Channel.Read(b)
	return n, t.cause(err)
}

func (t *tunnelled) Write(b []byte) (int, error) {
	n, err := t.Channel.Write(b)
	return n, t.cause(err)
}

// cause returns the deadline as the cause of an error after it.
func (t *tunnelled) cause(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.late {
		return os.ErrDeadlineExceeded
	}
	return err
}

// SetDeadline implements [net.Conn]. The connection does not survive its deadline.
func (t *tunnelled) SetDeadline(at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if at.IsZero() {
		return nil
	}
	t.timer = time.AfterFunc(time.Until(at), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.late = true
		_ = t.Channel.Close() // its reader and writer report the deadline
	})
	return nil
}

// SetReadDeadline implements [net.Conn].
func (t *tunnelled) SetReadDeadline(at time.Time) error { return t.SetDeadline(at) }

// SetWriteDeadline implements [net.Conn].
func (t *tunnelled) SetWriteDeadline(at time.Time) error { return t.SetDeadline(at) }

// LocalAddr implements [net.Conn]. The address is on the jump host and unknown.
func (t *tunnelled) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements [net.Conn]. The jump host knows the address.
func (t *tunnelled) RemoteAddr() net.Addr { return &net.TCPAddr{} }
