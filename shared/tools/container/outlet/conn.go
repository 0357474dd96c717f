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

// silent drops what net/http logs about connections that break.
var silent = log.New(io.Discard, "", 0)

// conn is a connection over two streams. Its owner ends it by ending them.
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

// http2 is HTTP/2 without TLS, which the engine's own connection may have.
func http2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// single is a listener with one connection. It is closed when that has ended.
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

// Close ends what can be ended.
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

// limited is a writer that fails beyond a number of bytes.
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
