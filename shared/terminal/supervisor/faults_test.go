package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// a returns a command for bash.
func a(id, command string) supervisor.Start {
	return supervisor.Start{ID: id, Command: command, Grammar: shell.Bash, Limit: await.Most}
}

func open(t *testing.T, s *sshd.Server) *supervisor.Client {
	t.Helper()
	k, err := supervisor.Open(t.Context(), s.Dial())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// printed reports when a text was printed.
type printed struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan bool
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buf.Write(b)
	if p.seen != nil && bytes.Contains(p.buf.Bytes(), []byte(p.want)) {
		close(p.seen)
		p.seen = nil
	}
	return len(b), nil
}

// await closes seen as soon as the text was printed, or at once if it was already.
func (p *printed) await(want string, seen chan bool) {
	p.mu.Lock()
	p.want, p.seen = want, seen
	p.mu.Unlock()
	_, _ = p.Write(nil)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

func (p *printed) Len() int { return len(p.String()) }

// loses starts a command, loses its connection once the command has printed "on", and returns the output.
func loses(t *testing.T, k *supervisor.Client, c supervisor.Start, fault func()) *printed {
	t.Helper()
	out := &printed{want: "on", seen: make(chan bool)}
	seen := out.seen
	ended := make(chan error, 1)
	go func() {
		_, err := k.Start(t.Context(), c, out)
		ended <- err
	}()
	select {
	case <-seen:
	case err := <-ended:
		t.Fatal(c.ID, err)
	}
	fault()
	if err := <-ended; err == nil {
		t.Errorf("%s: the connection was not lost", c.ID)
	}
	return out
}

// TestLostConnections loses the connection or the server in the middle of a command. The command continues, and runs
// once.
func TestLostConnections(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	for name, fault := range map[string]func(){"cut": s.Cut, "killed": func() { s.Kill(); s.Restart() }} {
		k := open(t, s)
		h := k.Handle()
		c := a("lost-"+name, `echo on; echo x >>witness-`+name+`; while [ ! -e go-`+name+
			` ]; do sleep 0.05; done; echo over; exit 9`)
		out := loses(t, k, c, fault)
		k = open(t, s)
		if state, _, err := k.Reconcile(t.Context(), c.ID, h, true); state != supervisor.Running || err != nil {
			t.Errorf("%s: %s, %v", name, state, err)
		}
		if _, err := k.Start(t.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrBegun) {
			t.Errorf("%s: a second start: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(s.Home, "go-"+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rest := &printed{}
		r, err := k.Attach(t.Context(), c.ID, int64(out.Len()), rest)
		if all := out.String() + rest.String(); err != nil || r.Exit != 9 || all != "on\r\nover\r\n" {
			t.Errorf("%s: attached, %q, %+v, %v", name, all, r, err)
		}
		if w, err := os.ReadFile(filepath.Join(s.Home, "witness-"+name)); string(w) != "x\n" {
			t.Errorf("%s: it ran as %q, %v", name, w, err)
		}
	}
}

// TestReboot gives the host another boot ID.
func TestReboot(t *testing.T) {
	boot := filepath.Join(t.TempDir(), "boot id")
	write := func(id string) {
		if err := os.WriteFile(boot, []byte(id+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	s := sshd.Start(t, sshd.Options{Env: []string{"COUNTERSIGN_BOOT=" + boot}})
	k := open(t, s)
	h := k.Handle()
	if r, err := k.Start(t.Context(), a("before", "exit 3"), io.Discard); err != nil || r.Exit != 3 {
		t.Fatal(r, err)
	}
	write("second")
	for _, never := range []bool{false, true} {
		if state, _, err := k.Reconcile(t.Context(), "other", h, never); state != supervisor.Unknown || err != nil {
			t.Errorf("after a reboot: %s, %v", state, err)
		}
	}
	if state, r, err := k.Reconcile(t.Context(), "before", h, false); state != supervisor.Done || r.Exit != 3 ||
		err != nil {
		t.Errorf("what ended before the reboot: %s, %+v, %v", state, r, err)
	}
	if _, err := k.Start(t.Context(), a("other", "true"), io.Discard); !errors.Is(err, supervisor.ErrOther) {
		t.Errorf("a start that was prepared before the reboot: %v", err)
	}
	if k = open(t, s); !strings.HasPrefix(k.Handle(), "second/") {
		t.Errorf("the handle is %s", k.Handle())
	}
}

// TestKilledKeeper kills the keeper of a command. The command ends, and its result is unknown.
func TestKilledKeeper(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	out := &printed{want: "on", seen: make(chan bool)}
	seen := out.seen
	ended := make(chan error, 1)
	go func() {
		_, err := k.Start(t.Context(), a("killed", "echo on; trap '' HUP; sleep 1000"), out)
		ended <- err
	}()
	<-seen
	pid, err := os.ReadFile(filepath.Join(s.Home, ".countersign", "killed", "pid"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, supervisor.ErrLost) {
		t.Errorf("it ended with %v", err)
	}
	if state, _, err := k.Reconcile(t.Context(), "killed", k.Handle(), true); state != supervisor.Lost || err != nil {
		t.Errorf("it is %s, %v", state, err)
	}
	await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
}

// TestHomeNotWritable tests hosts on which the user has no writable home directory.
func TestHomeNotWritable(t *testing.T) {
	for name, o := range map[string]sshd.Options{"none": {NoHome: true}, "a file": {Home: "/dev/null"}} {
		k := open(t, sshd.Start(t, o))
		if k.Facts.Home != "" || len(k.Facts.Shells) == 0 {
			t.Errorf("%s: %+v", name, k.Facts)
		}
		c := a("x", "echo no")
		if _, err := k.Start(t.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrHome) {
			t.Errorf("%s: %v", name, err)
		}
		c = a("x", "ls -d /; exit 3")
		c.Plain, c.Cwd = true, "/"
		var out bytes.Buffer
		if r, err := k.Start(t.Context(), c, &out); err != nil || r.Exit != 3 || r.Cwd != "/" || out.String() != "/\n" {
			t.Errorf("%s: %q, %+v, %v", name, out.String(), r, err)
		}
		c = a("x", "sleep 1000")
		c.Plain, c.Limit = true, 300*time.Millisecond
		if r, err := k.Start(t.Context(), c, io.Discard); err != nil || !r.TimedOut {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestIDPrefix checks that the end of a command does not affect another command whose ID begins with its own.
func TestIDPrefix(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	longer := a("abc", "echo on; cat "+pipe)
	longer.Plain = true
	out, began := &printed{}, make(chan bool)
	out.await("on", began)
	ended := make(chan error, 1)
	go func() {
		r, err := open(t, s).Start(t.Context(), longer, out)
		if err == nil && r.Exit != 0 {
			err = fmt.Errorf("it ended with %d", r.Exit)
		}
		ended <- err
	}()
	<-began
	shorter := a("ab", "echo over")
	shorter.Plain = true
	if r, err := open(t, s).Start(t.Context(), shorter, io.Discard); err != nil || r.Exit != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	go os.WriteFile(pipe, nil, 0o600) // it waits for its reader
	if err := <-ended; err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// TestLoginNoise tests a login shell that prints before it runs anything.
func TestLoginNoise(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	if err := os.WriteFile(filepath.Join(s.Home, ".bashrc"), []byte("echo Welcome!; echo again >&2\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if r, err := open(t, s).Start(t.Context(), a("x", "echo on"), &out); err != nil || out.String() != "on\r\n" {
		t.Errorf("%q, %+v, %v", out.String(), r, err)
	}
}
