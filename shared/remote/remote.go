// Package remote connects to the hosts that users have added, over SSH. A host is known by the keys that its user has
// confirmed and by nothing else; what it says of itself before or during the login is neither shown nor logged. Nothing
// is ever forwarded: neither ports nor X11 nor an agent's keys.
package remote

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// The codes of what goes wrong on the way to a host.
const (
	CodeUnreachable            = fault.CodeHostUnreachable
	CodeLogin                  = fault.CodeHostLogin
	CodeKeyChanged             = fault.CodeHostKeyChanged
	CodeForbidden   fault.Code = "host_forbidden"      // its address is one that is never connected to
	CodeRefused                = fault.CodeHostRefused // logged in, and no command may be run
)

// Dialer opens a connection to an address. What it may reach is its own affair.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Times are how long what may take. A zero stands for the default.
type Times struct {
	Dial, Handshake, Login time.Duration // 10 s each
	Keepalive              time.Duration // 15 s: how often a connection is asked whether it is alive
	Idle                   time.Duration // 60 s: how long a connection stays open while it is not used
	Answer                 time.Duration // 10 s: after which Scan and Check answer that a host cannot be reached
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

// Secret opens a host's secret: a private key without a passphrase, or a password. It is called when a connection is
// made, and not where one is open.
type Secret = func(ctx context.Context) ([]byte, error)

// unreachable returns the one answer to every failure to reach a host, be there no such name, no route, no server, one
// that is no SSH server, or an address that may not be reached: who asks learns nothing of the network. It is marked as
// transient, because no command was sent. The cause is for the log, without names and addresses.
func unreachable(stage string, cause error) error {
	return tool.Transient(fault.New(fault.Tool, CodeUnreachable,
		"The host cannot be reached just now. Nothing was sent to it.").Because(errors.New(stage + ": " + kind(cause))))
}

// Unreachable reports whether err says that a host could not be reached, or no longer.
func Unreachable(err error) bool { return fault.Is(err, fault.Tool, CodeUnreachable) }

// kind returns what kind of failure it was. The text of an error may name an address, or repeat what a host said.
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

// refusedLogin returns the error of a host that did not accept the user's key or password.
func refusedLogin() error {
	return fault.New(fault.Auth, CodeLogin,
		"The host was reached, and refused the login. Check the user name and the key or password.")
}

// broken marks an error after which it is not known what came of the line that was sent.
func broken(err error) error {
	return fault.New(fault.Tool, CodeUnreachable, "The connection to the host was lost.").Because(errors.New(kind(err)))
}
