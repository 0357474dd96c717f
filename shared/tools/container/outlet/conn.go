package outlet

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// silent drops net/http's log lines about broken connections.
var silent = log.New(io.Discard, "", 0)

// conn is a connection over two streams. The owner of the streams ends the connection by closing them.
type conn struct {
	r io.Reader
	w io.Writer
}

func (c *conn) Read(b []byte) (int, error)       { return c.r.Read(b) }
func (c *conn) Write(b []byte) (int, error)      { return c.w.Write(b) }
func (c *conn) LocalAddr() net.Addr              { return address{} }
func (c *conn) RemoteAddr() net.Addr             { return address{} }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// http2 selects HTTP/2 without TLS. The engine's connection may add TLS.
func http2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// single is a listener that accepts one connection. It is closed when that connection has ended.
type single struct {
	conn  net.Conn
	taken atomic.Bool
	once  sync.Once
	ended chan struct{}
}

func (s *single) Accept() (net.Conn, error) {
	if s.taken.CompareAndSwap(false, true) {
		return s.conn, nil
	}
	<-s.ended
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.ended) })
	return nil
}

func (s *single) Addr() net.Addr { return address{} }

// Close closes those of the two streams that can be closed.
func (c *conn) Close() error {
	var errs []error
	for _, one := range []any{c.r, c.w} {
		if closer, ok := one.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
	}
	return errors.Join(errs...)
}

type address struct{}

func (address) Network() string { return "stream" }
func (address) String() string  { return "container" }

// limited is a writer that fails after a number of bytes.
type limited struct {
	w    io.Writer
	left int
}

var errLimit = errors.New("outlet: more was sent to the container than it may receive")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, errLimit
	}
	l.left -= len(b)
	return l.w.Write(b)
}
