package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session is one connection to the server.
type session struct {
	*mcp.ClientSession
	ended  <-chan struct{} // closed when the connection has ended, on either side
	kill   func()          // ends it at once
	listed atomic.Bool     // the tools were listed after the server's last change notification
}

// speaker returns the SDK's client for the session.
func (c *Client) speaker(s *session) *mcp.Client {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "countersign", Version: "1"}, &mcp.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // the SDK's log quotes servers
		Capabilities: &mcp.ClientCapabilities{},     // no roots, no sampling, no questions to the user
		// The SDK would repeat a call whose server asks for more input. Effects must not be repeated.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			s.listed.Store(false)
			c.cfg.Log.Info("an MCP server says that its tools have changed", "server", c.cfg.Name)
			c.cfg.Changed()
		},
	})
	sdk.AddSendingMiddleware(uncached)
	return sdk
}

// uncached removes the time to live that a server gives its list of tools, because the list is requested to see whether
// it has changed.
func uncached(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && list != nil {
			list.TTLMs = 0
		}
		return res, err
	}
}

// A line is a connection that is being made: the transport, and a function that ends it at once.
type line struct {
	mcp.Transport
	kill   func()
	status func() int32 // of the last HTTP answer; nil for a program
	asked  func() int64 // nanoseconds that the last HTTP answer asks to wait

	mu   sync.Mutex
	conn mcp.Connection
}

// Connect stores the connection, so that it can be closed if the SDK fails without closing it.
func (l *line) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := l.Transport.Connect(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	return conn, err
}

// abort ends a connection that was not established.
func (l *line) abort() {
	l.kill()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // it is given up
	}
}

var errClosed = errors.New("the client is closed")

// connected returns the session, and makes one if there is none.
func (c *Client) connected(ctx context.Context) (*session, error) {
	select {
	case c.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.lock }()
	if c.closed {
		return nil, errClosed
	}
	if c.session != nil && !c.session.over() {
		return c.session, nil
	}
	again := c.session != nil
	if again {
		c.release(c.session)
	}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.session = s
	c.cfg.Log.Debug("connected to an MCP server", "server", c.cfg.Name, "again", again)
	return s, nil
}

func (s *session) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// oldProtocol is the protocol version for servers that fail with a newer one.
const oldProtocol = "2025-11-25"

// connect makes a session. If a server fails with the newest protocol, connect tries the old one.
func (c *Client) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	s, err := c.connectAs(ctx, "")
	if err == nil || ctx.Err() != nil || neverSent(err) {
		return s, err
	}
	s, errOld := c.connectAs(ctx, oldProtocol)
	if errOld != nil {
		return nil, err
	}
	return s, nil
}

func (c *Client) connectAs(ctx context.Context, protocol string) (*session, error) {
	l, err := c.line()
	if err != nil {
		return nil, err
	}
	s, done := &session{kill: l.kill}, make(chan error, 1)
	go func() { // some of the SDK's waits have no time limit
		var err error
		s.ClientSession, err = c.speaker(s).Connect(ctx, l, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		l.abort()
		if err = <-done; err == nil { // it came too late
			_ = s.Close()
			err = ctx.Err()
		}
	}
	if err != nil {
		l.abort()
		if l.status != nil {
			err = statusError{err, int(l.status()), time.Duration(l.asked())}
		}
		return nil, err
	}
	ended := make(chan struct{})
	s.ended = ended
	c.under.Go(func() {
		defer close(ended)
		_ = s.Wait() // calls in progress get the reason
	})
	return s, nil
}

// drop gives up a session that is no longer usable.
func (c *Client) drop(s *session) {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	if c.session == s {
		c.release(s)
	}
}

// release ends c's session in the background. The caller holds the lock.
func (c *Client) release(s *session) {
	c.session = nil
	c.under.Go(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.Close() // the server may be gone
		}()
		grace := time.NewTimer(closeGrace)
		defer grace.Stop()
		select {
		case <-closed:
		case <-grace.C:
		}
		s.kill()
		<-closed
		<-s.ended
	})
}

// line returns a new connection to the server.
func (c *Client) line() (*line, error) {
	if len(c.cfg.Command) == 0 {
		return c.dial(), nil
	}
	p, err := start(c.cfg)
	if err != nil {
		return nil, unsent{fmt.Errorf("start %s: %w", c.cfg.Name, err)}
	}
	return &line{Transport: p, kill: p.kill}, nil
}
