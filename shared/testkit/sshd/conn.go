package sshd

import (
	"context"
	"errors"
	"net"

	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// A Conn is a connection to a server, made as the product makes it.
type Conn struct {
	conn
	pool *remote.Pool
}

type conn interface {
	supervisor.Conn
	supervisor.Memory
}

// Close cuts the connection.
func (c *Conn) Close() error { return c.pool.Close() }

// Dial connects to the server and logs in. The connection ends with the test unless it is closed before.
func (s *Server) Dial() *Conn {
	s.t.Helper()
	c, err := s.TryDial()
	check(s.t, err)
	s.t.Cleanup(func() { check(s.t, c.Close()) })
	return c
}

// TryDial is like Dial for a server that may not answer; the caller closes the connection.
func (s *Server) TryDial() (*Conn, error) { return Connect(s.Host(), s.Key) }

// Host returns the server as the host that a user would add.
func (s *Server) Host() *terminal.Host {
	h := &terminal.Host{ID: "host-1", UID: "ana", Address: "127.0.0.1", Port: s.Port, Username: s.User,
		Auth: terminal.AuthPrivateKey, Version: "v1"}
	for _, key := range s.HostKeys() {
		h.HostKeys = append(h.HostKeys, remote.HostKey(key))
	}
	return h
}

// Connect logs in to a host with a private key in an OpenSSH file. The caller closes the connection.
func Connect(h *terminal.Host, key []byte) (*Conn, error) {
	pool := remote.NewPool(&net.Dialer{}, remote.Times{})
	c, _, err := pool.Get(context.Background(), h, func(context.Context) ([]byte, error) { return key, nil })
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &Conn{c.(conn), pool}, nil
}
