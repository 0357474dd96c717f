package remote_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestOpenSSH runs commands on OpenSSH's server, and checks streams, a terminal with its size, and exit codes.
func TestOpenSSH(t *testing.T) {
	s := sshd.Start(t, sshd.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	p := newPool(t, remote.Times{})
	for _, pinned := range s.HostKeys() {
		h := s.Host()
		h.ID, h.HostKeys = pinned.Type(), pin(pinned)
		run(t, get(t, p, h, secret(s.Key)), "true")
	}
	c := get(t, p, s.Host(), secret(s.Key))
	var out, errs bytes.Buffer
	exit, err := c.Exec(t.Context(), supervisor.Exec{Line: "cat; echo oops >&2; exit 3", Stdin: strings.NewReader("in"),
		Stdout: &out, Stderr: &errs})
	if exit != 3 || err != nil || out.String() != "in" || errs.String() != "oops\n" {
		t.Errorf("%d, %v, %q, %q", exit, err, &out, &errs)
	}
	if exit, err := c.Exec(t.Context(), supervisor.Exec{Line: "kill -9 $$"}); exit != 137 || err != nil {
		t.Errorf("a command that was killed: %d, %v", exit, err)
	}
	resized := make(chan supervisor.Size, 1)
	var screen bytes.Buffer
	in, typed := io.Pipe()
	defer typed.Close()
	seen := writer(func(b []byte) (int, error) {
		screen.Write(b)
		if strings.Contains(screen.String(), "24 80") && cap(resized) > len(resized) &&
			!strings.Contains(screen.String(), "41 121") {
			resized <- supervisor.Size{Cols: 121, Rows: 41}
		}
		return len(b), nil
	})
	exit, err = c.Exec(t.Context(),
		supervisor.Exec{Line: "trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.01; done",
			PTY: &supervisor.Size{Cols: 80, Rows: 24}, Stdin: in, Stdout: seen, Resize: resized})
	if exit != 0 || err != nil || !strings.Contains(screen.String(), "41 121") {
		t.Errorf("%d, %v, %q", exit, err, &screen)
	}
}

// TestConnectionsOfTwoUsers logs two users in to one host with the same user name. The host sees two connections, and
// the same ones again for each user's next command.
func TestConnectionsOfTwoUsers(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	p := newPool(t, remote.Times{})
	seen := map[string]string{} // the connection of each user
	for _, uid := range []string{"ana", "ben", "ana", "ben"} {
		h := s.Host()
		h.UID = uid
		by := run(t, get(t, p, h, secret(s.Key)), "echo $SSH_CONNECTION")
		if before := seen[uid]; before != "" && before != by {
			t.Errorf("%s comes by %q, and before by %q", uid, by, before)
		}
		seen[uid] = by
	}
	if seen["ana"] == seen["ben"] || p.Open() != 2 {
		t.Errorf("%d connections: %v", p.Open(), seen)
	}
}

// TestMaxSessions tests a server that allows one channel for each connection.
func TestMaxSessions(t *testing.T) {
	s := sshd.Start(t, sshd.Options{Config: []string{"MaxSessions 1"}})
	c := get(t, newPool(t, remote.Times{}), s.Host(), secret(s.Key))
	started, end := make(chan bool, 1), make(chan struct{})
	in, typed := io.Pipe()
	go func() {
		defer close(end)
		_, err := c.Exec(t.Context(), supervisor.Exec{Line: "echo on; cat", Stdin: in,
			Stdout: writer(func(b []byte) (int, error) { started <- true; return len(b), nil })})
		if err != nil {
			t.Error(err)
		}
	}()
	<-started
	if got := run(t, c, "echo beside"); got != "beside\n" {
		t.Errorf("got %q", got)
	}
	_ = typed.Close()
	<-end
}

// TestScan compares the result with the server's keys.
func TestScan(t *testing.T) {
	s := sshd.Start(t, sshd.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	got, err := newPool(t, remote.Times{}).Scan(t.Context(), "127.0.0.1", s.Port)
	if err != nil {
		t.Fatal(err)
	}
	want := pin(s.HostKeys()...)
	for _, keys := range [][]terminal.HostKey{got, want} {
		slices.SortFunc(keys, func(a, b terminal.HostKey) int { return strings.Compare(a.Type, b.Type) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if log := s.Log(); strings.Contains(log, "Accepted") {
		t.Errorf("it logged in:\n%s", log)
	}
}

// TestScanWithoutServer scans addresses without an SSH server. The answers are the same, and come after the same time.
func TestScanWithoutServer(t *testing.T) {
	web, silent := newServer(t), newServer(t)
	web.accepted = func(c net.Conn) bool { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad\r\n\r\n"); return false }
	silent.accepted = func(c net.Conn) bool { _, _ = io.Copy(io.Discard, c); return false }
	const answer = 300 * time.Millisecond
	p := newPool(t, remote.Times{Answer: answer})
	ports := map[string]int{"web": web.start().host().Port, "silent": silent.start().host().Port, "closed": 1}
	same := ""
	for name, port := range ports {
		began := time.Now()
		_, err := p.Scan(t.Context(), "127.0.0.1", port)
		if took := time.Since(began); took < answer {
			t.Errorf("%s: it took %v", name, took)
		}
		if same == "" {
			same = err.Error()
		}
		if !remote.Unreachable(err) || err.Error() != same {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReconnectAfterRestart connects again to a server that was restarted and has lost its connections. With another
// key, the server is refused.
func TestReconnectAfterRestart(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	p := newPool(t, remote.Times{})
	h := s.Host()
	c, release, err := p.Get(t.Context(), h, secret(s.Key))
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "true")
	s.Cut()
	await.That(t, "the connections are closed", func() bool { return p.Open() == 0 })
	if _, err := c.Exec(t.Context(), supervisor.Exec{Line: "true"}); !tool.IsTransient(err) {
		t.Errorf("on a connection that was cut: %v", err)
	}
	release()
	run(t, get(t, p, h, secret(s.Key)), "true")
	s.Kill()
	s.NewHostKeys()
	s.Restart()
	await.That(t, "the connections are closed", func() bool { return p.Open() == 0 })
	if _, _, err := p.Get(t.Context(), h, secret(s.Key)); !fault.Is(err, fault.Policy, remote.CodeKeyChanged) {
		t.Errorf("with other keys: %v", err)
	}
}

// TestKeys logs in with keys of each type. A key that the host does not know is refused.
func TestKeys(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	p := newPool(t, remote.Times{})
	for _, args := range [][]string{{"-t", "ed25519"}, {"-t", "ecdsa"}, {"-t", "rsa", "-b", "2048"}} {
		key := keygen(t, args...)
		h := s.Host()
		h.Version = args[1]
		if _, _, err := p.Get(t.Context(), h, secret(key)); !fault.Is(err, fault.Auth, remote.CodeLogin) {
			t.Errorf("%v, which is not authorized: %v", args, err)
		}
		known, err := ssh.ParsePrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		s.Authorize(known.PublicKey())
		run(t, get(t, p, h, secret(key)), "true")
	}
}

// TestLeasedConnection checks that a connection in use stays open for longer than an idle one.
func TestLeasedConnection(t *testing.T) {
	key := signer(t, "ed25519")
	s := newServer(t, key)
	var asked atomic.Int64
	s.opened = func(ssh.Conn) { asked.Add(1) }
	h := s.start().host()
	h.HostKeys = pin(key.PublicKey())
	p := newPool(t, remote.Times{Idle: time.Millisecond})
	held := get(t, p, h, secret(newKey(t)))
	for range 20 {
		_, release, err := p.Get(t.Context(), h, secret(newKey(t)))
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	run(t, held, "x")
	if s.count() != 1 {
		t.Errorf("%d connections", s.count())
	}
}
