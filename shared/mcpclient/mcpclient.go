// Package mcpclient makes tools of what a server of the Model Context Protocol offers. The server is a stranger: what
// it lists is bounded, every tool counts as an effect unless the operator says that it reads, what it says of a tool is
// part of what a user approves, its hints can only make a tool stricter, and a call with an effect is never repeated
// unless it provably did not arrive.
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

	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/outbound"
)

// Bounds of what one server may say.
const (
	maxMessage  = 8 << 20 // bytes of one message
	maxListed   = 1000    // tools on all pages
	maxPages    = 50
	maxTools    = 100      // that are used
	maxSaid     = 16 << 10 // bytes of a description that the model is told
	maxResult   = 60 << 10 // bytes of what the model reads of an answer
	maxRequests = 64       // requests of the server that are not answered yet
	maxPosts    = 256      // requests to a server of HTTP at one time, its own answered among them
)

const (
	defaultTimeout = 30 * time.Second
	closeGrace     = 2 * time.Second  // for a server to end when it is asked to
	writeBound     = 10 * time.Second // for a server to read what is written to it
)

// Config says where a server is. Exactly one of Command and URL is needed.
type Config struct {
	Name string // as people read it on an approval: a letter, then up to 31 letters, digits, _ and -

	Command []string // a program and its arguments, which speaks over its standard input and output
	Dir     string   // where the program runs; empty: where this one does
	Env     []string // NAME=value: its environment beside PATH, HOME, LANG and TMPDIR, all that it gets of this one's

	URL    string      // of a streamable HTTP endpoint: https, or http on this machine
	Header http.Header // sent with each request, such as Authorization
	// HTTP sends the requests; nil means a client with the default transport. Its dialer decides which addresses are
	// reached. Redirects are not followed, whatever it says.
	HTTP *http.Client
	// Deaf leaves out the stream on which a server of HTTP speaks by itself. Its news of changed tools are not heard.
	Deaf bool

	Timeout time.Duration // to connect, to list, and for a call whose context has no deadline; 0 means 30 s
	Log     *slog.Logger  // nil means none
	Changed func()        // called after the server said that its tools have changed; optional
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

// check returns all that is wrong with the configuration.
func (c Config) check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if !validName.MatchString(c.Name) {
		add("name: %q is not a letter followed by up to 31 letters, digits, _ and -", c.Name)
	}
	if (len(c.Command) > 0) == (c.URL != "") {
		add("a command or a URL is needed, and not both")
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		add("command: the program is missing")
	}
	for _, pair := range c.Env {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			add("env: each entry is NAME=value") // what stands there may be a secret
		}
	}
	if u, err := url.Parse(c.URL); c.URL != "" && (err != nil || !outbound.Secure(u)) {
		add("url: https without a user name is needed, or http on this machine")
	}
	if c.Timeout < 0 {
		add("timeout: it is negative")
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("MCP server %q: %w", c.Name, err)
	}
	return nil
}

// identity returns a hash of where the server is. What it is reached with, such as a token, is no part of it.
func (c Config) identity() string {
	return hash(append([]string{c.URL, c.Dir}, c.Command...)...)
}

// hash returns SHA-256 over the parts and their lengths.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A Client is a connection to a server, made when it is first needed and made anew when it was lost. It is safe for
// concurrent use.
type Client struct {
	cfg      Config
	identity string
	life     context.Context // until Close
	end      context.CancelFunc

	lock    chan struct{} // held by whoever looks at, makes or drops the session
	session *session      // nil: none, or lost
	closed  bool
	under   sync.WaitGroup // the sessions' goroutines

	known sync.Map // the name of a tool: its definition as it was last listed
}

// New returns a client of a server. The error says all that is wrong with the configuration; the server is not yet
// asked for anything.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	c.Command, c.Env, c.Header = slices.Clone(c.Command), slices.Clone(c.Env), c.Header.Clone()
	cl := &Client{cfg: c, identity: c.identity(), lock: make(chan struct{}, 1)}
	cl.life, cl.end = context.WithCancel(context.Background())
	return cl, nil
}

// Name returns the server's name as the configuration has it.
func (c *Client) Name() string { return c.cfg.Name }

// Close ends the connection: a program is asked to end and then killed with all that it has started. Calls under way
// return an error, and so do later ones.
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
