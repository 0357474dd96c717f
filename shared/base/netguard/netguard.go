// Package netguard decides which addresses may be dialled for users. It checks each address after resolving its name,
// because a name can resolve to another address at any time.
package netguard

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrDenied is the error for an address that may not be dialled. Nothing was sent to it. It is an [fs.ErrPermission].
var ErrDenied = fmt.Errorf("netguard: the address may not be dialled: %w", fs.ErrPermission)

// internet denies all addresses that are reserved for a special purpose.
var internet = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// Options allow addresses other than public ones. Link-local addresses, the metadata addresses of clouds, and multicast
// addresses are never dialled, whatever is allowed.
type Options struct {
	Ports    []int // of public addresses; none: any port
	Private  bool  // allow private networks too, at these ports
	Loopback bool  // allow loopback addresses too, at these ports
	// Literal is like Loopback, but only for localhost or a loopback address in the request itself, not for a name that
	// resolves to one.
	Literal  bool
	Open     []Opening // further networks, names and ports
	Deployed bool      // Open allows no loopback addresses

	Resolver *net.Resolver // nil: the machine's
	// Connect connects to an address that was checked. It is for tests, which simulate the internet. If it is nil, the
	// machine connects.
	Connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// Guard dials only what its options allow. It is safe for concurrent use.
type Guard struct{ o Options }

// New returns a Guard.
func New(o Options) *Guard { return &Guard{o} }

// dialTime limits a connection attempt, as in [net/http]'s transport, unless ctx ends first.
const dialTime = 30 * time.Second

// DialContext connects to a TCP address. If a name has several addresses, each is checked when it is tried, and
// forbidden ones are skipped. It returns [ErrDenied] if only forbidden addresses are left.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if g.o.Connect != nil {
		return g.connect(ctx, address)
	}
	d := net.Dialer{Timeout: dialTime, KeepAlive: dialTime, Resolver: g.o.Resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return g.judge(normal(host), network, address)
		}}
	return d.DialContext(ctx, network, address)
}

// connect resolves a name itself and connects to the first allowed address.
func (g *Guard) connect(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ips, err := g.o.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		network := "tcp6"
		if ip = ip.Unmap(); ip.Is4() {
			network = "tcp4"
		}
		to := net.JoinHostPort(ip.String(), port)
		if g.judge(normal(host), network, to) == nil {
			return g.o.Connect(ctx, network, to)
		}
	}
	return nil, ErrDenied
}

// PortOpen reports whether the port is allowed for the host at all. It checks only the text, so its answer reveals
// nothing about the network. It may be true for a name with private addresses, which are then not dialled.
func (g *Guard) PortOpen(host string, port int) bool {
	if len(g.o.Ports) == 0 || slices.Contains(g.o.Ports, port) {
		return true
	}
	name := normal(host)
	ip, err := netip.ParseAddr(name)
	return slices.ContainsFunc(g.o.Open, func(o Opening) bool {
		if err != nil { // a name may have any address
			return o.port == port && (o.name == "" || o.named(name))
		}
		return o.port == port && o.holds(name, ip.Unmap())
	})
}

// Refuses reports whether the host is an address that is never dialled: loopback, link-local, a cloud's metadata or
// multicast. Like [Guard.PortOpen], it checks only the text. It reveals nothing about private networks, because only
// the operator should know which are allowed.
func (g *Guard) Refuses(host string, port int) bool {
	host = normal(host)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return saysLoopback(host) && !g.allows(host, netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	}
	ip = ip.Unmap()
	k := kindOf(ip)
	return (k == never || k == loopback) && !g.allows(host, ip, port)
}

// Permits reports whether another machine, which resolves names itself, may connect to the address for the user. A name
// is therefore permitted only if the options open it. Like [Guard.PortOpen], it checks only the text.
func (g *Guard) Permits(host string, port int) bool {
	host = normal(host)
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == "" && g.allows(host, ip.Unmap(), port)
	}
	return slices.ContainsFunc(g.o.Open, func(o Opening) bool {
		return o.port == port && o.name != "" && o.named(host)
	})
}

// judge returns nil if the named host may be dialled at the address, and otherwise ErrDenied.
func (g *Guard) judge(host, network, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return ErrDenied
	}
	ip, port := to.Addr(), int(to.Port())
	if ip.Zone() != "" {
		return ErrDenied
	}
	ip = ip.Unmap()
	if g.allows(host, ip, port) {
		return nil
	}
	return ErrDenied
}

func (g *Guard) allows(host string, ip netip.Addr, port int) bool {
	k := kindOf(ip)
	usual := len(g.o.Ports) == 0 || slices.Contains(g.o.Ports, port)
	opened := slices.ContainsFunc(g.o.Open, func(o Opening) bool { return o.port == port && o.holds(host, ip) })
	switch k {
	case never:
		return false
	case loopback:
		return opened && !g.o.Deployed || usual && (g.o.Loopback || g.o.Literal && saysLoopback(host))
	case private:
		return opened || g.o.Private && usual
	case special:
		return opened
	}
	return opened || usual || slices.Contains(g.o.Open, Opening{port: port})
}

func saysLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// normal returns a name in lower case without a trailing dot.
func normal(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// Opening is an exception that an operator allows: addresses or names, at a port.
type Opening struct {
	net  netip.Prefix // for addresses
	name string       // for a name; with a leading dot: for all names that end in it
	port int
}

// holds reports whether the opening applies to the host or to the address. An opening with only a port applies to
// neither: it allows the port for public addresses.
func (o Opening) holds(host string, ip netip.Addr) bool {
	return o.net.IsValid() && o.net.Contains(ip) || o.name != "" && o.named(host)
}

func (o Opening) named(host string) bool {
	if strings.HasPrefix(o.name, ".") {
		return strings.HasSuffix(host, o.name)
	}
	return host == o.name
}

// DefaultPort is the port of an opening that names none.
const DefaultPort = 22

// Parse parses an opening: an address, a range of addresses (10.0.0.0/8) or a DNS name (*.corp.example for all names
// below it), each with or without a port (10.0.0.0/8:2222, [fd00::/8]:22), or only a port (:2222), which is allowed for
// public addresses.
func Parse(text string) (o Opening, err error) {
	host, port, err := split(text)
	if err != nil {
		return o, err
	}
	o.port = port
	if host == "" {
		return o, nil
	}
	if prefix, err := netip.ParsePrefix(host); err == nil {
		o.net = prefix.Masked()
		if ip := prefix.Addr(); ip.Is4In6() || ip.Zone() != "" {
			return o, fmt.Errorf("%q: write an IPv4 address in IPv4 form", host)
		}
		return o, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return o, fmt.Errorf("%q: an address with a zone is not accepted", host)
		}
		ip = ip.Unmap()
		o.net = netip.PrefixFrom(ip, ip.BitLen())
		return o, nil
	}
	name, below := strings.CutPrefix(host, "*.")
	if !isName(name) || below && !strings.Contains(name, ".") {
		return o, fmt.Errorf("%q is not an address, a range of addresses or a DNS name", host)
	}
	if o.name = name; below {
		o.name = "." + name
	}
	return o, nil
}

// split splits the text into the part before the port, and the port.
func split(text string) (host string, port int, err error) {
	host, after, given := text, "", false
	switch inner, bracket := strings.CutPrefix(text, "["); {
	case bracket:
		var closed bool
		if host, after, closed = strings.Cut(inner, "]"); !closed || !strings.Contains(host, ":") {
			return "", 0, fmt.Errorf("%q: expected an IPv6 address in the brackets", text)
		}
		if after != "" {
			if after, given = strings.CutPrefix(after, ":"); !given {
				return "", 0, fmt.Errorf("%q: expected a colon and a port after the bracket", text)
			}
		}
	case strings.Count(text, ":") == 1:
		host, after, given = strings.Cut(text, ":")
	case text == "":
		return "", 0, fmt.Errorf("the text is empty")
	}
	if !given {
		return host, DefaultPort, nil
	}
	port, err = strconv.Atoi(after)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != after {
		return "", 0, fmt.Errorf("%q: expected a port from 1 to 65535", text)
	}
	return host, port, nil
}

// isName accepts DNS names in lower case whose last label is not a number, which resolvers would treat as an address.
func isName(name string) bool {
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if len(l) < 1 || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' ||
			strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(name) <= 253 && last[0] >= 'a' && last[0] <= 'z'
}

// ParseAll parses all texts with [Parse]. It returns the first error.
func ParseAll(texts []string) (all []Opening, err error) {
	for _, t := range texts {
		o, err := Parse(t)
		if err != nil {
			return nil, fmt.Errorf("netguard: %w", err)
		}
		all = append(all, o)
	}
	return all, nil
}
