package remote

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/terminal"
)

// maxScanned is the maximum number of keys that a host is asked for. A host has one key of each type that it supports.
const maxScanned = 8

// errScanned ends a handshake once the host has proved its key.
var errScanned = errors.New("the host has proved its key")

// Scan returns all keys that can identify a host. The host proves each of them without a login. Scan connects through
// the hosts of via, and logs in to those. Every failure returns the same error (CodeUnreachable) after the same time,
// so that callers learn nothing about the network. The list of allowed ports is public, so any other port is a
// ValidationError for the field port.
func (p *Pool) Scan(ctx context.Context, host string, port int, via ...Hop) (keys []terminal.HostKey, err error) {
	if g, ok := p.dialer.(interface{ PortOpen(string, int) bool }); ok && !g.PortOpen(host, port) {
		return nil, fault.Invalid("port", "connections to this port are not allowed here; the usual port is 22")
	}
	err = p.evenly(ctx, func(ctx context.Context) error {
		keys, err = p.scan(ctx, route{host, port, via})
		return err
	})
	return keys, err
}

func (p *Pool) scan(ctx context.Context, to route) (keys []terminal.HostKey, err error) {
	offered, err := p.offered(ctx, to)
	if err != nil {
		return nil, err
	}
	for _, format := range offered {
		key, err := p.keyOf(ctx, to, hostKeyAlgorithms(format))
		if err != nil {
			return nil, err
		}
		if weak(key) {
			continue
		}
		keys = append(keys, HostKey(key))
	}
	if len(keys) == 0 {
		return nil, unreachable("scan", errors.New("the host has no supported key"))
	}
	return keys, nil
}

// offered returns the types of the keys that a host has. It requests a type that does not exist, and the host answers
// with its list.
func (p *Pool) offered(ctx context.Context, to route) (formats []string, err error) {
	_, err = p.handshake(ctx, to, scanning([]string{"none@countersign"}, nil), nil)
	var none *ssh.AlgorithmNegotiationError
	if errors.As(err, new(*onTheWay)) {
		return nil, err
	}
	if !errors.As(err, &none) || none.What != hostKeyNegotiation {
		return nil, unreachable("scan", err)
	}
	for _, a := range none.RequestedAlgorithms {
		f := formatOf(a)
		if len(hostKeyAlgorithms(f)) > 0 && !slices.Contains(formats, f) && len(formats) < maxScanned {
			formats = append(formats, f)
		}
	}
	return formats, nil
}

// keyOf returns the key that the host proves with one of the algorithms.
func (p *Pool) keyOf(ctx context.Context, to route, algorithms []string) (key ssh.PublicKey, err error) {
	_, err = p.handshake(ctx, to, scanning(algorithms, &key), nil)
	if key == nil {
		return nil, unreachable("scan", err)
	}
	return key, nil
}

// scanning returns the configuration of a handshake that ends when the host has proved its key.
func scanning(algorithms []string, key *ssh.PublicKey) *ssh.ClientConfig {
	return &ssh.ClientConfig{ClientVersion: version, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			*key = k
			return errScanned
		}}
}

// evenly runs do and delays each failure to reach a host to the same time limit, however early it is known.
func (p *Pool) evenly(ctx context.Context, do func(context.Context) error) error {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, p.times.Answer)
	defer cancel()
	err := do(within)
	if Unreachable(err) {
		if err := wait.For(ctx, p.times.Answer-time.Since(began)); err != nil {
			return err
		}
	}
	return err
}
