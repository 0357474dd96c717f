package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// maxResumes is the number of times that the broken stream of an answer is resumed.
const maxResumes = 2

// dial returns a connection to an HTTP server.
func (c *Client) dial() *line {
	life, end := context.WithCancel(context.Background())
	given := http.Client{}
	if c.cfg.HTTP != nil {
		given = *c.cfg.HTTP
	}
	by := &bounded{base: given.Transport, life: life, end: end, header: c.cfg.Header, timeout: c.cfg.Timeout,
		now: c.cfg.Now}
	given.Transport = by
	given.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &line{kill: end, status: by.last.Load, asked: by.asked.Load,
		Transport: &mcp.StreamableClientTransport{Endpoint: c.cfg.URL, HTTPClient: &given, MaxRetries: maxResumes,
			DisableStandaloneSSE: c.cfg.Deaf, MaxEventSize: maxSDK}}
}

// bounded sends the requests of one session. No request outlives the session, no answer is read without a limit, and
// each call's context records the certain facts about its request.
type bounded struct {
	base    http.RoundTripper // nil: the default transport
	life    context.Context
	end     func()
	open    atomic.Int32 // requests without response headers
	last    atomic.Int32 // status of the last answer; 0: none
	asked   atomic.Int64 // nanoseconds that the last answer asks to wait
	header  http.Header
	timeout time.Duration // for the response headers, if the request has no deadline
	now     func() time.Time
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	defer b.open.Add(-1)
	if b.open.Add(1) > maxPosts {
		b.end()
		return nil, errFlood
	}
	ctx, cancel := context.WithCancel(req.Context())
	unhook := context.AfterFunc(b.life, cancel)
	stop := func() { unhook(); cancel() }
	if _, bound := ctx.Deadline(); !bound {
		headers := time.AfterFunc(b.timeout, cancel)
		defer headers.Stop()
	}
	connected := atomic.Bool{}
	req = req.Clone(httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}))
	for name, values := range b.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	t := &tracks{}
	if req.Method == http.MethodPost {
		t = tracksOf(req.Context())
	}
	t.sent.Store(true)
	base := b.base
	if base == nil {
		base = http.DefaultTransport
	}
	res, err := base.RoundTrip(req)
	if err != nil {
		stop()
		t.sent.Store(connected.Load() || !neverSent(err)) // the caller's client may try more than once
		return nil, err
	}
	t.status.Store(int32(res.StatusCode))
	b.last.Store(int32(res.StatusCode))
	t.busy.Store(res.Header.Get("Retry-After") != "")
	asked := int64(outbound.RetryAfter(res.Header, b.now()))
	t.after.Store(asked)
	b.asked.Store(asked)
	in := &body{Reader: res.Body, Closer: res.Body, stop: stop, left: maxMessage, endless: isStream(res)}
	res.ContentLength = -1 // the SDK reads more bytes than were sent
	if res.Body = (readCloser{&exactBody{in: in}, in}); in.endless {
		res.Body = readCloser{newExactEvents(in), in}
	}
	return res, nil
}

// isStream reports whether the answer is an event stream. Each event has a limit of its own.
func isStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" && res.StatusCode == http.StatusOK
}

type readCloser struct {
	io.Reader
	io.Closer
}

var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxMessage)

// body is an answer's body with a limit on its size.
type body struct {
	io.Reader
	io.Closer
	stop    func()
	once    sync.Once
	left    int
	endless bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.endless {
		return b.Reader.Read(p)
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

func (b *body) Close() error {
	err := b.Closer.Close()
	b.once.Do(b.stop)
	return err
}

// tracks records the certain facts about a request while its outcome is unknown.
type tracks struct {
	sent   atomic.Bool  // some of it was sent, or may have been
	status atomic.Int32 // of the HTTP answer; 0: none
	busy   atomic.Bool  // the answer has a Retry-After header
	after  atomic.Int64 // nanoseconds that the answer asks to wait
}

type tracksKey struct{}

func withTracks(ctx context.Context) (context.Context, *tracks) {
	t := &tracks{}
	return context.WithValue(ctx, tracksKey{}, t), t
}

// tracksOf returns the tracks in a call's context, or new ones that are never read.
func tracksOf(ctx context.Context) *tracks {
	if t, ok := ctx.Value(tracksKey{}).(*tracks); ok {
		return t
	}
	return &tracks{}
}

// unsent is an error from before anything was sent.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// neverSent reports whether err proves that nothing was sent, because no connection was made.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &unsent{}) || errors.As(err, &op) && op.Op == "dial"
}

// statusError is the reason why an HTTP server cannot be connected to.
type statusError struct {
	error
	status int
	after  time.Duration // that the server asks to wait
}

func (s statusError) Unwrap() error { return s.error }

// Why returns why a server could not be reached, for an operator's log. It contains no words of the server, and at most
// the host of its address.
func Why(err error) string {
	var (
		s statusError
		u *url.Error
		o *net.OpError
	)
	switch {
	case fault.Is(err, fault.Tool, codeTooMany):
		return fault.As(err).Message
	case errors.As(err, &s) && s.status >= 300:
		return fmt.Sprintf("it returned the HTTP status %d", s.status)
	case errors.As(err, &o):
		return o.Err.Error()
	case errors.As(err, &u):
		return u.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return "it did not answer as a server of MCP does"
}
