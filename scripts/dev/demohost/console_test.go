package demohost_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/scripts/dev/demohost"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// served is a demo host that accepts connections, with a key that may log in.
type served struct {
	*demohost.Host
	addr *net.TCPAddr
	key  []byte
}

func serve(t testing.TB, dir string) *served {
	t.Helper()
	h, err := demohost.Open(demohost.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	file, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Authorize(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &served{h, ln.Addr().(*net.TCPAddr), pem.EncodeToMemory(file)}
}

func (s *served) dial(t testing.TB) supervisor.Conn {
	t.Helper()
	c, err := sshd.Connect(&terminal.Host{ID: "demo", UID: "ana", Address: s.addr.IP.String(), Port: s.addr.Port,
		Username: demohost.User, Auth: terminal.AuthPrivateKey, Version: "v1",
		HostKeys: []terminal.HostKey{remote.HostKey(s.Key())}}, s.key)
	return cleanup.Close(t, c, err)
}

// client logs in like an ordinary client, which requests more than the product does.
func (s *served) client(t testing.TB) *ssh.Client {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(s.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ssh.Dial("tcp", s.addr.String(), &ssh.ClientConfig{User: demohost.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(s.Key())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the host may have closed it
	return c
}

// person is a user at a terminal: the output that they see, and the keys that they type.
type person struct {
	t    *testing.T
	keys io.WriteCloser

	mu   sync.Mutex
	seen string
}

func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen += string(b)
	return len(b), nil
}

// types presses keys when the screen ends with the prompt.
func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, keys); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits for new output that contains want, and returns the output before it.
func (p *person) sees(want string) (before string) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("seen is %q", p.seen)
		}
	}()
	await.That(p.t, fmt.Sprintf("%q is seen", want), func() (found bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		first, rest, found := strings.Cut(p.seen, want)
		if found {
			before, p.seen = first, rest
		}
		return found
	})
	return before
}

// TestPersonsShell logs in with an ordinary client, and works in the shell.
func TestPersonsShell(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "host"))
	session, err := s.client(t).NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	p := &person{t: t}
	session.Stdout = p
	if p.keys, err = session.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.RequestPty("xterm", 30, 90, ssh.TerminalModes{}), session.Shell()); err != nil {
		t.Fatal(err)
	}
	p.sees("root@demo:~# ")
	p.types("cd /etc/nginx && x='a b'\r")
	p.sees("root@demo:/etc/nginx# ")
	p.types("echo \"$x\" | tr a c; stty size; false\r")
	p.sees("c b\r\n30 90\r\n")
	p.types("echo code $?\r")
	p.sees("code 1\r\n")
	p.types("for i in 1 2\r")
	p.sees("> ")
	p.types("do echo i$i; done\r")
	p.sees("i1\r\ni2\r\n")
	p.types("echo begun; sleep 1000\r")
	p.sees("begun\r\n")
	p.types("\x03")
	p.sees("^C\r\n")
	p.sees("root@demo:/etc/nginx# ")
	p.types("echo half of a li\x03")
	p.sees("root@demo:/etc/nginx# ")
	p.types("echo reading; read name; echo hello $name\r")
	p.sees("reading\r\n")
	p.types("Ana\r")
	p.sees("hello Ana\r\n")
	p.types("stty -echo; echo password; read word; stty echo; echo got $word\r")
	p.sees("password\r\n")
	p.types("hidden\r")
	if shown := p.sees("got hidden\r\n"); shown != "" {
		t.Errorf("what is typed is shown after stty -echo: %q", shown)
	}
	if err := session.WindowChange(44, 132); err != nil {
		t.Fatal(err)
	}
	p.types("until [ \"$(stty size)\" = \"44 132\" ]; do sleep 0.1; done; echo resized\r")
	p.sees("\r\nresized\r\n")
	p.types("sleep 1000 & ps\r")
	p.sees("-bash")
	p.types("exit 3\r")
	var exit *ssh.ExitError
	if err := session.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Errorf("it ended with %v", err)
	}
}

// TestOrdinaryLine executes a line as ssh HOST LINE does.
func TestOrdinaryLine(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "host"))
	var out, errs strings.Builder
	code, err := s.dial(t).Exec(t.Context(),
		supervisor.Exec{Line: "sort; echo wrong >&2; exit 4", Stdin: strings.NewReader("b\na\n"),
			Stdout: &out, Stderr: &errs})
	if err != nil || code != 4 || out.String() != "a\nb\n" || errs.String() != "wrong\n" {
		t.Errorf("%d, %v: %q, %q", code, err, out.String(), errs.String())
	}
}

// TestChannelsRefused checks that channels to other destinations are refused.
func TestChannelsRefused(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "host"))
	c := s.client(t)
	if _, err := c.Dial("tcp", "127.0.0.1:22"); err == nil {
		t.Error("a connection was forwarded")
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("a port is forwarded")
	}
}
