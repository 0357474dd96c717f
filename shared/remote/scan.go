package remote

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/wait"
)

// maxScanned is how many keys of a host are asked for: a host has one of each type that it knows.
const maxScanned = 8

// errScanned ends a handshake once the host has proved its key.
var errScanned = errors.New("the key is known")

// Scan returns all keys of a host by which it can be known, each proved by the host, without logging in. Whatever
// stands in the way, the answer is the same (CodeUnreachable) and comes after the same time, so that nothing of the
// network is learned by it. Which ports are open to all is no secret: another one is a ValidationError of port.
func (p *Pool) Scan(ctx context.Context, host string, port int) (keys []terminal.HostKey, err error) {
	if g, ok := p.dialer.(interface{ PortOpen(string, int) bool }); ok && !g.PortOpen(host, port) {
		return nil, fault.Invalid("port", "hosts are not reached at this port from here; 22 is the usual one")
	}
	err = p.evenly(ctx, func(ctx context.Context) error {
		keys, err = p.scan(ctx, host, port)
		return err
	})
	return keys, err
}

func (p *Pool) scan(ctx context.Context, host string, port int) (keys []terminal.HostKey, err error) {
	offered, err := p.offered(ctx, host, port)
	if err != nil {
		return nil, err
	}
	for _, format := range offered {
		key, err := p.keyOf(ctx, host, port, hostKeyAlgorithms(format))
		if err != nil {
			return nil, err
		}
		if weak(key) {
			continue
		}
		keys = append(keys, HostKey(key))
	}
	if len(keys) == 0 {
		return nil, unreachable("scan", errors.New("it has no key that is supported"))
	}
	return keys, nil
}

// offered returns the types of the keys that a host has. It is asked for one of a type that does not exist, and answers
// with the list.
func (p *Pool) offered(ctx context.Context, host string, port int) (formats []string, err error) {
	_, err = p.handshake(ctx, host, port, scanning([]string{"none@countersign"}, nil), nil)
	var none *ssh.AlgorithmNegotiationError
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

// keyOf returns the key with which a host proves itself by one of the algorithms.
func (p *Pool) keyOf(ctx context.Context, host string, port int, algorithms []string) (key ssh.PublicKey, err error) {
	_, err = p.handshake(ctx, host, port, scanning(algorithms, &key), nil)
	if key == nil {
		return nil, unreachable("scan", err)
	}
	return key, nil
}

// scanning returns the settings of a handshake that ends when the host has proved its key.
func scanning(algorithms []string, key *ssh.PublicKey) *ssh.ClientConfig {
	return &ssh.ClientConfig{ClientVersion: version, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			*key = k
			return errScanned
		}}
}

// evenly has each failure to reach a host come at the same moment, however soon it is known, and no later.
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
