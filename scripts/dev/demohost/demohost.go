// Package demohost is a simulated machine on which users can try the terminal agent. It is an SSH server that
// interprets commands over one folder (os.Root), with programs that are functions of this package. It starts no
// process, opens no connection, and reads nothing outside of its folder, whatever the user approves. A machine without
// sshd therefore has a host too, and commands cannot reach the machine itself.
//
// Besides typed commands, it answers the lines of the supervisor's script (shared/terminal/supervisor) in Go. It does
// not simulate signals that a command ignores, background jobs that outlive their command, full-screen programs, or
// users other than root. A command that runs when the server dies is lost, because it runs inside the server; its
// journal says so. Memory is not limited: a command that doubles a variable forever ends the server.
package demohost

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/keyfile"
)

// User is the name of the only user who can log in.
const User = user

// Options are the options of a host.
type Options struct {
	Dir string           // contains all its data; created if it does not exist
	Now func() time.Time // nil: time.Now

	Banner func() string // the message at login; nil: none
}

// Host is the machine with its SSH server.
type Host struct {
	machine *machine
	signer  ssh.Signer
	config  *ssh.ServerConfig
	keys    string // the file of authorized keys
	now     func() time.Time

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	conns    map[net.Conn]bool
	allowed  []ssh.PublicKey
	jobs     map[string]*job
	consoles map[string]*console

	claims sync.Mutex // while a command is started or forbidden
}

// Open opens the machine in its folder, and creates it if the folder has none.
func Open(o Options) (*Host, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	signer, err := hostKey(o.Dir)
	if err != nil {
		return nil, err
	}
	m, err := openMachine(o.Dir, o.Now)
	if err != nil {
		return nil, fmt.Errorf("the demo host in %s: %w", o.Dir, err)
	}
	h := &Host{machine: m, signer: signer, keys: filepath.Join(o.Dir, "authorized_keys"), now: o.Now,
		conns: map[net.Conn]bool{}, jobs: map[string]*job{}, consoles: map[string]*console{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.config = &ssh.ServerConfig{ServerVersion: "SSH-2.0-demo", MaxAuthTries: 6, PublicKeyCallback: h.login}
	if o.Banner != nil {
		h.config.BannerCallback = func(ssh.ConnMetadata) string { return o.Banner() }
	}
	h.config.AddHostKey(signer)
	if err := h.readKeys(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func hostKey(dir string) (ssh.Signer, error) {
	data, err := keyfile.Read(dir, "host_key", func(w io.Writer) error {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		block, err := ssh.MarshalPrivateKey(private, "demo host")
		if err != nil {
			return err
		}
		return pem.Encode(w, block)
	})
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(data)
}

// Key returns the host key.
func (h *Host) Key() ssh.PublicKey { return h.signer.PublicKey() }

func (h *Host) readKeys() error {
	data, err := os.ReadFile(h.keys)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for len(data) > 0 && err == nil {
		var key ssh.PublicKey
		if key, _, _, data, err = ssh.ParseAuthorizedKey(data); err == nil {
			h.allowed = append(h.allowed, key)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Authorize permanently lets the owner of a key log in; line has the format of authorized_keys.
func (h *Host) Authorize(line string) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.allowed, same(key)) {
		return nil
	}
	f, err := os.OpenFile(h.keys, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(ssh.MarshalAuthorizedKey(key))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	h.allowed = append(h.allowed, key)
	return nil
}

func same(key ssh.PublicKey) func(ssh.PublicKey) bool {
	return func(k ssh.PublicKey) bool { return string(k.Marshal()) == string(key.Marshal()) }
}

func (h *Host) login(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.User() != User || !slices.ContainsFunc(h.allowed, same(key)) {
		return nil, errors.New("unknown user or key")
	}
	return &ssh.Permissions{}, nil
}

// Serve accepts connections until the listener or the host is closed.
func (h *Host) Serve(ln net.Listener) error {
	stop := context.AfterFunc(h.ctx, func() { _ = ln.Close() })
	defer stop()
	for {
		conn, err := ln.Accept()
		if h.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return err
		}
		if !h.admit(conn) {
			return conn.Close()
		}
	}
}

// admit serves a connection unless the host is closing. Close waits for all connections that were admitted before.
func (h *Host) admit(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return false
	}
	h.conns[conn] = true
	h.work(func() { h.serve(conn) })
	return true
}

func (h *Host) work(f func()) {
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		f()
	}()
}

// Close ends all commands and connections.
func (h *Host) Close() error {
	h.mu.Lock()
	h.cancel()
	for c := range h.conns {
		_ = c.Close() // the other end notices
	}
	h.mu.Unlock()
	h.wg.Wait()
	return h.machine.disk.root.Close()
}

// loginTime is how long a client may take to log in.
const loginTime = 20 * time.Second

func (h *Host) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		h.mu.Lock()
		delete(h.conns, conn)
		h.mu.Unlock()
	}()
	if conn.SetDeadline(time.Now().Add(loginTime)) != nil {
		return
	}
	server, channels, requests, err := ssh.NewServerConn(conn, h.config)
	if err != nil || conn.SetDeadline(time.Time{}) != nil {
		return // the client gets the error; there is no other reader
	}
	defer server.Close()
	h.work(func() { ssh.DiscardRequests(requests) })
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.Prohibited, "there are sessions only")
			continue
		}
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			(&session{host: h, channel: channel}).serve(asked)
		}()
	}
}
