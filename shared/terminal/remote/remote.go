// Package remote connects to the hosts that users have added, over SSH. A host is identified only by the keys that its
// user has confirmed. Text that the host sends before or during the login is neither shown nor logged. Nothing is ever
// forwarded: no ports, no X11, no agent keys.
package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Error codes for connections to hosts.
const (
	CodeUnreachable            = fault.CodeHostUnreachable
	CodeLogin                  = fault.CodeHostLogin
	CodeKeyChanged             = fault.CodeHostKeyChanged
	CodeForbidden   fault.Code = "host_forbidden"      // connections to this address are never allowed
	CodeRefused                = fault.CodeHostRefused // the login succeeded, but commands are refused
)

// Dialer opens a connection to an address. It decides which addresses are allowed.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Times are timeouts and intervals. A zero field stands for the default.
type Times struct {
	Dial, Handshake, Login time.Duration // 10 s each
	Keepalive              time.Duration // 15 s: interval between checks that a connection is alive
	Idle                   time.Duration // 60 s: time that an unused connection stays open
	Answer                 time.Duration // 10 s: time after which Scan and Check report an unreachable host
}

// The defaults of Times.
const (
	stepTime  = 10 * time.Second
	aliveTime = 15 * time.Second
	idleTime  = time.Minute
)

func (t Times) orDefaults() Times {
	for _, d := range []*time.Duration{&t.Dial, &t.Handshake, &t.Login, &t.Answer} {
		if *d == 0 {
			*d = stepTime
		}
	}
	if t.Keepalive == 0 {
		t.Keepalive = aliveTime
	}
	if t.Idle == 0 {
		t.Idle = idleTime
	}
	return t
}

// Secret returns a host's secret: a private key without a passphrase, or a password. It is called only when a new
// connection is made.
type Secret = func(ctx context.Context) ([]byte, error)

// unreachable returns the error for every failure to reach a host. The cause may be a missing name, a missing route, no
// server, a server that is not SSH, or a forbidden address; the error is always the same, so that callers learn nothing
// about the network. It is marked as transient, because no command was sent. The cause is for the log, without names
// and addresses.
func unreachable(stage string, cause error) error {
	return tool.Transient(fault.New(fault.Tool, CodeUnreachable,
		"The host cannot be reached just now. Nothing was sent to it.").Because(errors.New(stage + ": " + kind(cause))))
}

// Unreachable reports whether err means that a host could not be reached, or can no longer be reached.
func Unreachable(err error) bool { return fault.Is(err, fault.Tool, CodeUnreachable) }

// kind returns the kind of a failure. It does not quote the error, which may contain an address or text from the host.
func kind(err error) string {
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "time ran out"
	case errors.Is(err, context.Canceled):
		return "it was cancelled"
	case errors.Is(err, fs.ErrPermission):
		return "the address is not allowed"
	case errors.As(err, &dns):
		return "the name was not resolved"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, net.ErrClosed):
		return "the connection was closed"
	}
	return "failed"
}

// refusedLogin returns the error for a host that did not accept the user's key or password.
func refusedLogin() error {
	return fault.New(fault.Auth, CodeLogin,
		"The host refused the login. Check the user name and the key or password.")
}

// broken returns the error for a lost connection. The outcome of the line that was sent is unknown.
func broken(err error) error {
	return fault.New(fault.Tool, CodeUnreachable, "The connection to the host was lost.").Because(errors.New(kind(err)))
}
