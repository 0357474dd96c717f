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
	ended  <-chan struct{} // closed when the connection has ended, from whichever side
	kill   func()          // ends it at once
	listed atomic.Bool     // whether the tools were listed since the server last said that they changed
}

// speaker returns the SDK's client for the session.
func (c *Client) speaker(s *session) *mcp.Client {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "countersign", Version: "1"}, &mcp.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // it quotes what servers say
		Capabilities: &mcp.ClientCapabilities{},     // no roots, no sampling, no questions to the user
		// The SDK would repeat a call whose server asks for more; an effect is not repeated.
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

// uncached forgets for how long a server says that its list of tools holds: whether it does is what is asked.
func uncached(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if list, ok := res.(*mcp.ListToolsResult); ok && list != nil {
			list.TTLMs = 0
		}
		return res, err
	}
}

// A line is a connection in the making: what carries messages, and what ends it at once.
type line struct {
	mcp.Transport
	kill   func()
	status func() int32 // of the last answer of HTTP; nil: it is a program

	mu   sync.Mutex
	conn mcp.Connection
}

// Connect remembers the connection, so that it can be closed where the SDK fails without doing so.
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

// connected returns the session, and makes one where there is none.
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

// oldProtocol is what is spoken to a server that is at a loss with a newer one.
const oldProtocol = "2025-11-25"

// connect makes a session. A server that fails at the newest protocol's first question is asked again in the old way.
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
	go func() { // the SDK waits for some things without a bound
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
			err = statusError{err, int(l.status())}
		}
		return nil, err
	}
	ended := make(chan struct{})
	s.ended = ended
	c.under.Go(func() {
		defer close(ended)
		_ = s.Wait() // how it ended is what the calls under way are told
	})
	return s, nil
}

// drop gives a session up that is of no more use.
func (c *Client) drop(s *session) {
	c.lock <- struct{}{}
	defer func() { <-c.lock }()
	if c.session == s {
		c.release(s)
	}
}

// release ends the session, which is c's, in the background; the lock is held.
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

// line returns a new line to the server.
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
