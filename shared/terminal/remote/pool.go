package remote

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// Limits of connections.
const (
	maxChannels = 4   // concurrent channels of one connection
	maxLinks    = 6   // connections to one host with one secret
	maxOpen     = 256 // connections in total
)

// Pool keeps open connections to hosts for reuse. A connection belongs to one user, one host, one version of the
// secret, and what the user confirmed about the host. No user's commands therefore use another user's connection, and
// a host whose document was changed is not reached through an older connection.
type Pool struct {
	dialer Dialer
	times  Times

	mu     sync.Mutex
	groups map[key]*group
	open   int // connections that are open or being made
	closed bool
	all    sync.WaitGroup
}

// NewPool returns a pool that dials with d.
func NewPool(d Dialer, t Times) *Pool {
	return &Pool{dialer: d, times: t.orDefaults(), groups: map[key]*group{}}
}

type key struct{ uid, host, version, confirmed string }

// group holds the connections to one host with one secret of one user. The pool's lock protects its fields.
type group struct {
	key     key
	making  chan struct{} // has an entry while a connection is being made; others wait for it
	links   []*link
	leases  int           // connections that Get returned and that were not released
	changed chan struct{} // closed when a channel or a connection ends
	idle    *time.Timer   // closes the connections; set while leases is 0
	since   time.Time     // when leases became 0, by the wall clock
}

// Get returns a connection to the host, through the hosts of via in their order. It is logged in, and the keys of the
// host and of the hosts on the way were verified. The connection stays open until release is called, unless it breaks.
// After that, each Exec fails with an error marked as transient, and the next Get makes a new connection. For the
// errors, see the package's codes; those of an unreachable host are marked as transient.
func (p *Pool) Get(ctx context.Context, h *terminal.Host, open Secret, via ...Hop) (supervisor.Conn, func(), error) {
	c, release, err := p.get(ctx, h, open, via)
	if err != nil {
		return nil, nil, err
	}
	return c, release, nil
}

func (p *Pool) get(ctx context.Context, h *terminal.Host, open Secret, via []Hop) (*conn, func(), error) {
	if d, ok := p.dialer.(interface{ Refuses(string, int) bool }); ok && d.Refuses(h.Address, h.Port) {
		return nil, nil, fault.New(fault.Policy, CodeForbidden,
			"Connections to this address are not allowed here.")
	}
	g, err := p.lease(key{h.UID, h.ID, h.Version, h.Confirmed()})
	if err != nil {
		return nil, nil, err
	}
	c := &conn{pool: p, group: g, host: h, open: open, via: via}
	if c.first, err = p.warm(ctx, c); err != nil {
		p.release(g)
		return nil, nil, err
	}
	return c, sync.OnceFunc(func() { p.release(g) }), nil
}

// lease counts one more user of a group, so that the group stays.
func (p *Pool) lease(k key) (*group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, unreachable("pool", context.Canceled)
	}
	g := p.groups[k]
	if g == nil {
		g = &group{key: k, making: make(chan struct{}, 1), changed: make(chan struct{})}
		p.groups[k] = g
	}
	if g.leases++; g.leases == 1 && g.idle != nil {
		g.idle.Stop()
		if time.Since(g.since) > p.times.Idle { // a function without requests is paused, including its timers
			p.closeLinks(g)
		}
	}
	return g, nil
}

// release ends a lease. After the last one, the connections stay open for a while.
func (p *Pool) release(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.leases--; g.leases > 0 {
		return
	}
	if len(g.links) == 0 {
		delete(p.groups, g.key)
		return
	}
	g.since = time.Now().Round(0)
	g.idle = time.AfterFunc(p.times.Idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if g.leases == 0 {
			p.closeLinks(g)
			delete(p.groups, g.key)
		}
	})
}

// closeLinks closes the connections of a group. The caller holds the lock.
func (p *Pool) closeLinks(g *group) {
	for _, l := range g.links {
		l.close()
	}
	g.links = nil
}

// warm returns an open connection of the group that answers, or makes one.
func (p *Pool) warm(ctx context.Context, c *conn) (*link, error) {
	g := c.group
	for {
		p.mu.Lock()
		var l *link
		if len(g.links) > 0 {
			l = g.links[0]
		}
		p.mu.Unlock()
		if l == nil {
			return p.add(ctx, c, 0)
		}
		if l.answers(ctx, p.times) {
			return l, nil
		}
		l.close()
		p.remove(g, l)
		if ctx.Err() != nil {
			return nil, unreachable("reuse", context.Cause(ctx))
		}
	}
}

// add opens one more connection of the group, unless another caller has opened one in the meantime. had is the number
// of connections that the caller saw.
func (p *Pool) add(ctx context.Context, to *conn, had int) (*link, error) {
	g := to.group
	select {
	case g.making <- struct{}{}:
		defer func() { <-g.making }()
	case <-ctx.Done():
		return nil, unreachable("pool", context.Cause(ctx))
	}
	p.mu.Lock()
	if n := len(g.links); n > had {
		defer p.mu.Unlock()
		return g.links[n-1], nil
	}
	if err := p.makeRoom(); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	p.open++
	p.mu.Unlock()
	c, err := p.connect(ctx, to.host, to.open, to.via)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		_ = c.Close() // it is no longer needed
		err = unreachable("pool", context.Canceled)
	}
	if err != nil {
		p.open--
		return nil, err
	}
	l := &link{conn: c, most: maxChannels, gone: make(chan struct{}), heard: time.Now().Round(0)}
	g.links = append(g.links, l)
	p.all.Go(func() { l.keepAlive(p.times) })
	p.all.Go(func() {
		_ = c.Wait() // it is gone, whatever ended it
		close(l.gone)
		p.remove(g, l)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open--
	})
	return l, nil
}

// makeRoom closes unused connections if there are too many. The caller holds the lock.
func (p *Pool) makeRoom() error {
	if p.closed {
		return unreachable("pool", context.Canceled)
	}
	if p.open < maxOpen {
		return nil
	}
	var oldest *group
	for _, g := range p.groups {
		if g.leases == 0 && (oldest == nil || g.since.Before(oldest.since)) {
			oldest = g
		}
	}
	if oldest == nil {
		return tool.Transient(fault.New(fault.Tool, fault.CodeOverloaded,
			"Too many hosts are connected. Please try again later.").After(10 * time.Second))
	}
	oldest.idle.Stop()
	p.closeLinks(oldest)
	delete(p.groups, oldest.key)
	return nil
}

// remove removes a closed connection from its group.
func (p *Pool) remove(g *group, l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range g.links {
		if other == l {
			g.links = append(g.links[:i:i], g.links[i+1:]...)
		}
	}
	if g.leases == 0 && len(g.links) == 0 && p.groups[g.key] == g {
		if g.idle != nil {
			g.idle.Stop()
		}
		delete(p.groups, g.key)
	}
	g.wake()
}

// wake wakes the waiters for a channel. The caller holds the pool's lock.
func (g *group) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Close closes all connections and waits for their goroutines. It returns nil.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, g := range p.groups {
		if g.idle != nil {
			g.idle.Stop()
		}
		for _, l := range g.links {
			l.close()
		}
	}
	p.mu.Unlock()
	p.all.Wait()
	return nil
}

// link is one SSH connection.
type link struct {
	conn ssh.Conn
	gone chan struct{} // closed when the connection has ended

	// The pool's lock protects these fields.
	used int // open channels
	most int // maximum number of channels that the host allows

	mu    sync.Mutex
	heard time.Time // when the host last answered, by the wall clock
	known any       // see Recall
}

func (l *link) close() { _ = l.conn.Close() } // it may have ended already

func (l *link) alive() bool {
	select {
	case <-l.gone:
		return false
	default:
		return true
	}
}

// answers reports whether the host is alive. It asks the host only after a period of silence.
func (l *link) answers(ctx context.Context, t Times) bool {
	l.mu.Lock()
	heard := l.heard
	l.mu.Unlock()
	return l.alive() && (time.Since(heard) < t.Keepalive || l.ask(ctx, t.Dial))
}

// ask sends a request to the host and waits for any answer.
func (l *link) ask(ctx context.Context, within time.Duration) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := l.conn.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case err := <-answered:
		if err == nil {
			l.hear()
		}
		return err == nil
	case <-late.C:
	case <-ctx.Done():
	case <-l.gone:
	}
	return false
}

func (l *link) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now().Round(0)
}

// keepAlive asks the host regularly, and closes the connection if it does not answer.
func (l *link) keepAlive(t Times) {
	tick := time.NewTicker(t.Keepalive)
	defer tick.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-tick.C:
			if !l.ask(context.Background(), t.Keepalive) {
				l.close()
				return
			}
		}
	}
}

// Open returns the number of connections that are open or being made.
func (p *Pool) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}
