package remote_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
)

// server is an SSH server for tests that OpenSSH's server cannot do: it accepts passwords, counts, and misbehaves.
type server struct {
	t        *testing.T
	config   ssh.ServerConfig
	listener net.Listener
	run      func(ssh.Channel, string) // runs a command; default: print it and exit with 0
	opened   func(ssh.Conn)            // called after a login
	accepted func(net.Conn) bool       // reports whether to continue a connection

	mu      sync.Mutex
	users   []string // the user names that clients sent
	secrets []string // the passwords that clients sent
	logins  int
	raw     []*wire
	all     sync.WaitGroup
}

// wire counts what a client sent.
type wire struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent.Write(b[:n])
	return n, err
}

func newServer(t *testing.T, keys ...ssh.Signer) *server {
	t.Helper()
	s := &server{t: t}
	s.config.ServerVersion = "SSH-2.0-Test"
	if len(keys) == 0 {
		keys = []ssh.Signer{signer(t, "ed25519")}
	}
	for _, k := range keys {
		s.config.AddHostKey(k)
	}
	s.config.PublicKeyCallback = func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.named(c.User())
		return nil, nil
	}
	return s
}

func (s *server) named(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, user)
}

// asks makes the server accept a password.
func (s *server) asks(password string) {
	s.config.PublicKeyCallback = nil
	s.config.PasswordCallback = func(c ssh.ConnMetadata, sent []byte) (*ssh.Permissions, error) {
		s.sent(c, string(sent))
		if string(sent) != password {
			return nil, errors.New("no")
		}
		return nil, nil
	}
}

func (s *server) sent(c ssh.ConnMetadata, secret string) {
	s.named(c.User())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, secret)
}

func (s *server) start() *server {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	return s.startOn(l)
}

func (s *server) startOn(l net.Listener) *server {
	s.listener = l
	var conns sync.Map
	s.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Store(c, true)
			s.all.Go(func() { s.serve(c) })
		}
	})
	s.t.Cleanup(func() {
		_ = l.Close()
		conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
		s.all.Wait()
	})
	return s
}

func (s *server) serve(raw net.Conn) {
	defer raw.Close()
	if s.accepted != nil && !s.accepted(raw) {
		return
	}
	w := &wire{Conn: raw}
	s.mu.Lock()
	s.raw = append(s.raw, w)
	s.mu.Unlock()
	c, channels, requests, err := ssh.NewServerConn(w, &s.config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.logins++
	s.mu.Unlock()
	s.all.Go(func() { ssh.DiscardRequests(requests) })
	if s.opened != nil {
		s.opened(c)
	}
	for n := range channels {
		ch, in, err := n.Accept()
		if err != nil {
			return
		}
		s.all.Go(func() { s.session(ch, in) })
	}
}

func (s *server) session(ch ssh.Channel, in <-chan *ssh.Request) {
	for r := range in {
		if r.WantReply {
			_ = r.Reply(r.Type == "exec" || r.Type == "pty-req", nil)
		}
		if r.Type != "exec" {
			continue
		}
		var line struct{ Line string }
		_ = ssh.Unmarshal(r.Payload, &line)
		s.all.Go(func() {
			if s.run != nil {
				s.run(ch, line.Line)
				return
			}
			_, _ = io.WriteString(ch, line.Line)
			finish(ch, 0)
		})
	}
}

func finish(ch ssh.Channel, code uint32) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ C uint32 }{code}))
	_ = ch.Close()
}

func (s *server) host() *terminal.Host {
	s.t.Helper()
	h := &terminal.Host{ID: "host-1", UID: "ana", Address: "127.0.0.1", Port: 22, Username: "root",
		Auth: terminal.AuthPrivateKey, Version: "v1"}
	if addr, ok := s.listener.Addr().(*net.TCPAddr); ok {
		h.Port = addr.Port
	}
	return h
}

func (s *server) count() int { s.mu.Lock(); defer s.mu.Unlock(); return s.logins }

func (s *server) seen() (users, secrets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users), slices.Clone(s.secrets)
}

// pin returns keys in the form in which a user confirms them.
func pin(keys ...ssh.PublicKey) (all []terminal.HostKey) {
	for _, k := range keys {
		all = append(all, remote.HostKey(k))
	}
	return all
}

func signer(t *testing.T, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	switch {
	case kind == "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case strings.HasPrefix(kind, "ecdsa"):
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keygen makes a key with ssh-keygen, and returns its file.
func keygen(t *testing.T, args ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	cmd := exec.Command("ssh-keygen", append(args, "-q", "-N", "", "-f", path)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
