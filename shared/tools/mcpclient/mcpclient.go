// Package mcpclient makes tools from the offers of a Model Context Protocol server. The server is not trusted. Its
// lists are bounded. Every tool counts as an effect unless the operator declares that it only reads. The server's
// description of a tool is part of what a user approves, and its hints can only make a tool stricter. A call with an
// effect is never repeated unless it provably did not arrive.
package mcpclient

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Limits for one server.
const (
	maxMessage  = 8 << 20 // bytes of one message
	maxListed   = 1000    // tools on all pages
	maxPages    = 50
	maxTools    = 100      // tools that are used
	maxSaid     = 16 << 10 // bytes of a description that the model sees
	maxResult   = 60 << 10 // bytes of a result that the model sees
	maxRequests = 64       // requests of the server without an answer
	maxPosts    = 256      // concurrent requests to an HTTP server, including answers to its own
)

const (
	defaultTimeout = 30 * time.Second
	closeGrace     = 2 * time.Second  // time for a server to end when asked
	writeBound     = 10 * time.Second // time for a server to read a written message
)

// Config describes a server. Exactly one of Command and URL is required.
type Config struct {
	Name string // shown on approvals: a letter, then up to 31 letters, digits, _ and -

	Command []string // a program and its arguments; it uses its standard input and output
	Dir     string   // the program's directory; empty: that of this process
	Env     []string // NAME=value: added to PATH, HOME, LANG, TMPDIR and SystemRoot; nothing else is inherited

	URL    string      // of a streamable HTTP endpoint: https, or http on this machine
	Header http.Header // sent with each request, such as Authorization
	// HTTP sends the requests; nil stands for a client with the default transport. Its dialer decides which addresses
	// are allowed. Redirects are never followed, whatever its settings.
	HTTP *http.Client
	// Deaf omits the stream on which an HTTP server sends messages on its own. Its change notifications are then not
	// received.
	Deaf bool

	Timeout time.Duration    // to connect, to list, and for a call whose context has no deadline; 0: 30 s
	Log     *slog.Logger     // nil: no log
	Changed func()           // called after the server has reported a change of its tools; optional
	Now     func() time.Time // nil: time.Now
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

// check returns an error that lists every mistake in the configuration.
func (c Config) check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if !validName.MatchString(c.Name) {
		add("name: %q is not a letter followed by up to 31 letters, digits, _ and -", c.Name)
	}
	if (len(c.Command) > 0) == (c.URL != "") {
		add("a command or a URL is required, and not both")
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		add("command: the program is missing")
	}
	for _, pair := range c.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			add("env: each entry is NAME=value") // the entry may be a secret
		}
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || !outbound.Secure(u)) {
		add("url: https without a user name is required, or http on this machine")
	}
	if c.Timeout < 0 {
		add("timeout: it is negative")
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("MCP server %q: %w", c.Name, err)
	}
	return nil
}

// identity returns a hash of the server's location. Credentials, such as a token, are not part of it.
func (c Config) identity() string {
	return hash(append([]string{c.URL, c.Dir}, c.Command...)...)
}

// hash returns the SHA-256 of the parts and their lengths, in hexadecimal.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A Client is a connection to a server. It connects when it is first needed, and again when the connection was lost. It
// is safe for concurrent use.
type Client struct {
	cfg      Config
	identity string
	life     context.Context // ends with Close
	end      context.CancelFunc

	lock    chan struct{} // held while the session is read, made or dropped
	session *session      // nil: none, or lost
	closed  bool
	under   sync.WaitGroup // the sessions' goroutines

	known sync.Map // maps tool names to their last listed definitions
}

// New returns a client for a server. It does not contact the server. The error lists every mistake in the
// configuration.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	c.Command, c.Env, c.Header = slices.Clone(c.Command), slices.Clone(c.Env), c.Header.Clone()
	cl := &Client{cfg: c, identity: c.identity(), lock: make(chan struct{}, 1)}
	cl.life, cl.end = context.WithCancel(context.Background())
	return cl, nil
}

// Name returns the server's name in the configuration.
func (c *Client) Name() string { return c.cfg.Name }

// Close ends the connection. A program is asked to end, and then killed with all processes that it has started. Calls
// in progress and later calls return an error.
func (c *Client) Close() error {
	c.end()
	c.lock <- struct{}{}
	c.closed = true
	if c.session != nil {
		c.release(c.session)
	}
	<-c.lock
	c.under.Wait()
	return nil
}
