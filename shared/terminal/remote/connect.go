package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal"
)

// version is the client's SSH version string.
const version = "SSH-2.0-Countersign"

// connect dials a host, checks that its key identifies it, and logs in.
func (p *Pool) connect(ctx context.Context, h *terminal.Host, open Secret, via []Hop) (ssh.Conn, error) {
	known, err := identityOf(h)
	if err != nil {
		return nil, err
	}
	secret, err := open(ctx)
	if err != nil {
		return nil, err
	}
	login, err := newLogin(h.Auth, secret)
	if err != nil {
		return nil, err
	}
	var refused error // why the host's key is not accepted
	cfg := &ssh.ClientConfig{User: h.Username, ClientVersion: version, HostKeyAlgorithms: known.algorithms(),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			refused = known.check(key, time.Now())
			return refused
		}}
	to := route{h.Address, h.Port, via}
	conn, err := p.handshake(ctx, to, cfg, login)
	var none *ssh.AlgorithmNegotiationError
	switch {
	case err == nil:
		return conn, nil
	case Unreachable(err), errors.As(err, new(*onTheWay)):
		return nil, err
	case refused != nil:
		return nil, refused
	case errors.As(err, &none) && none.What == hostKeyNegotiation:
		return nil, p.otherKind(ctx, to, &known, none.RequestedAlgorithms)
	case login.begun.Load():
		return nil, login.failed(err)
	}
	return nil, unreachable("handshake", err)
}

// hostKeyNegotiation is the name that errors of x/crypto use for the negotiation of the host key's algorithm.
const hostKeyNegotiation = "host key"

// handshake dials, exchanges keys and logs in, each within its time limit. It starts nothing on the host.
func (p *Pool) handshake(ctx context.Context, to route, cfg *ssh.ClientConfig, login *login) (ssh.Conn, error) {
	dialled, err := p.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	raw := &wire{Conn: dialled}
	deadline := func(d time.Duration) error { return raw.SetDeadline(time.Now().Add(d)) }
	if err := deadline(p.times.Handshake); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	if login != nil {
		cfg.AuthCallback = func(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
			if !login.begun.Swap(true) {
				if err := deadline(p.times.Login); err != nil {
					return nil, err
				}
			}
			if err := raw.broke(); err != nil {
				return nil, err
			}
			return login.next(c)
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // the handshake reports the error
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(raw, to.address(), cfg)
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, ignoreClosed(raw.Close()))
	}
	go ssh.DiscardRequests(requests)
	go refuse(channels)
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// refuse rejects each channel that the host opens: nothing is forwarded.
func refuse(channels <-chan ssh.NewChannel) {
	for c := range channels {
		_ = c.Reject(ssh.Prohibited, "nothing is forwarded") // a broken connection ends the loop
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// wire is a connection that records how it failed, so that a login on a broken connection is not reported as refused.
type wire struct {
	net.Conn
	mu  sync.Mutex
	err error
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	}
	return n, err
}

func (w *wire) broke() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// route leads to a server: its address, and the hosts to jump through.
type route struct {
	host string
	port int
	via  []Hop
}

func (r route) address() string { return net.JoinHostPort(r.host, strconv.Itoa(r.port)) }

// dial opens the TCP connection.
func (p *Pool) dial(ctx context.Context, to route) (net.Conn, error) {
	if len(to.via) > 0 {
		return p.tunnel(ctx, to)
	}
	ctx, cancel := context.WithTimeout(ctx, p.times.Dial)
	defer cancel()
	conn, err := p.dialer.DialContext(ctx, "tcp", to.address())
	if err != nil {
		return nil, unreachable("dial", err)
	}
	return conn, nil
}

// otherKind returns the error for a host that no longer has a key of a pinned type. It asks the host for one of its
// keys, without a login, to name it in the error.
func (p *Pool) otherKind(ctx context.Context, to route, known *identity, offered []string) error {
	for _, a := range offered {
		if len(hostKeyAlgorithms(formatOf(a))) == 0 {
			continue
		}
		key, err := p.keyOf(ctx, to, hostKeyAlgorithms(formatOf(a)))
		if err != nil {
			return err
		}
		return known.changed(key)
	}
	return unreachable("handshake", nil)
}

// login is one attempt of a user to log in to a host.
type login struct {
	methods []ssh.AuthMethod // with their names, in the order of preference
	names   []string
	begun   atomic.Bool // the host's key was verified, and the user name is sent
	used    bool        // the key or the password was sent
}

// newLogin returns the login with a host's secret. A password is sent only once: as a password or, if the host does not
// accept that method, as the answer to the host's only question.
func newLogin(kind terminal.AuthKind, secret []byte) (*login, error) {
	if kind != terminal.AuthPassword {
		signer, err := parseSigner(secret)
		if err != nil {
			return nil, err
		}
		return &login{methods: []ssh.AuthMethod{ssh.PublicKeys(signer)}, names: []string{"publickey"}}, nil
	}
	answered := false
	ask := func(_, _ string, questions []string, echo []bool) ([]string, error) {
		switch {
		case len(questions) == 0:
			return nil, nil
		case len(questions) > 1 || echo[0] || answered:
			return nil, errors.New("the host requires more than a password")
		}
		answered = true
		return []string{string(secret)}, nil
	}
	return &login{methods: []ssh.AuthMethod{ssh.Password(string(secret)), ssh.KeyboardInteractive(ask)},
		names: []string{"password", "keyboard-interactive"}}, nil
}

// next returns the one method to try: the first that the host accepts.
func (l *login) next(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	if l.used {
		return nil, errRefused
	}
	for i, name := range l.names {
		if slices.Contains(c.AllowedMethods, name) {
			l.used = true
			return l.methods[i], nil
		}
	}
	return nil, errRefused
}

var errRefused = errors.New("the login was refused")

// failed returns the error of a login that failed with err. A broken connection says nothing about the login.
func (l *login) failed(err error) error {
	var network net.Error
	var errno syscall.Errno
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.As(err, &network) ||
		errors.As(err, &errno) {
		return unreachable("login", err)
	}
	return refusedLogin()
}
