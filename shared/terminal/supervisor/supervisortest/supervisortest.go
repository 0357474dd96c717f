// Package supervisortest has a test suite for hosts that run commands: real hosts with the script of package
// supervisor, and servers that implement its verbs in another way.
package supervisortest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// most is the longest wait. It only ends tests that hang.
const most = 5 * time.Minute

// A Host is a host that the suite runs on.
type Host struct {
	Dial func(t testing.TB) supervisor.Conn // opens a new connection, which ends with the test
	PTY  bool                               // a command keeps its terminal when the connection is lost
	Bash bool                               // the host has bash
	Left func() []string                    // the processes of commands that run on it; nil: unknown
}

// short are times that a test can wait for.
var short = supervisor.Times{Term: 150 * time.Millisecond, Kill: 300 * time.Millisecond, Quiet: 100 * time.Millisecond,
	Patience: 300 * time.Millisecond, Idle: 5 * time.Second, Open: 5 * time.Second}

type world struct {
	*testing.T
	host Host
	k    *supervisor.Client
}

func newWorld(t *testing.T, host Host) *world {
	t.Helper()
	w := &world{T: t, host: host}
	w.k = w.open()
	return w
}

// open opens the keeper over a new connection.
func (w *world) open() *supervisor.Client {
	w.Helper()
	k, err := supervisor.Open(w.Context(), w.host.Dial(w))
	if err != nil {
		w.Fatal(err)
	}
	k.Times = short
	return k
}

// a returns a command with a unique ID. Several hosts may share one machine, where processes are found by the ID.
func (w *world) a(command string) supervisor.Start {
	s := supervisor.Start{ID: rand.Text(), Terminal: path.Base(w.Name()), Command: command, Grammar: shell.POSIX,
		Limit: most, Size: supervisor.Size{Cols: 100, Rows: 40}}
	if w.host.Bash {
		s.Grammar = shell.Bash
	}
	return s
}

// start runs a command to its end.
func (w *world) start(s supervisor.Start) (string, supervisor.Result) {
	w.Helper()
	out := &output{}
	ctx, cancel := context.WithTimeout(w.Context(), most)
	defer cancel()
	r, err := w.k.Start(ctx, s, out)
	if err != nil {
		w.Fatalf("%q: %v, having printed %q", s.Command, err, out)
	}
	return lines(out.String()), r
}

// begin runs a command in the background. The channel returns its result.
func (w *world) begin(s supervisor.Start) (*output, <-chan supervisor.Result) {
	out, ended := &output{}, make(chan supervisor.Result, 1)
	go func() {
		r, err := w.k.Start(w.Context(), s, out)
		if err != nil {
			w.Error(err)
		}
		ended <- r
	}()
	return out, ended
}

// lines returns terminal output without carriage returns.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func (w *world) expect(s supervisor.Start, printed string, exit int) supervisor.Result {
	w.Helper()
	got, r := w.start(s)
	if got != printed || r.Exit != exit {
		w.Errorf("%q printed %q and ended with %d; want %q and %d", s.Command, got, r.Exit, printed, exit)
	}
	return r
}

// Run runs the suite on a new host.
func Run(t *testing.T, host Host) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, host)
			c.run(w)
			w.nothingLeft()
		})
	}
}

var cases = []struct {
	name string
	run  func(w *world)
}{
	{"files", files},
	{"commands", commands},
	{"once", once},
	{"limit", limit},
	{"stop", stop},
	{"settle", settle},
	{"output", printing},
	{"forged", forged},
	{"hostile", hostile},
	{"plain", plain},
	{"opens", opens},
	{"commands with a pinned program", pins},
	{"commands in the directory of their card", places},
	{"left", left},
	{"shells", shells},
	{"input", input},
	{"held", held},
	{"running", running},
	{"shell", personsShell},
}

// shells starts a command with a shell that the host may lack. The host then starts nothing, and may start the command
// later.
func shells(w *world) {
	c := w.a("true")
	c.Grammar, c.Handle = shell.Bash, w.k.Handle()
	if w.host.Bash {
		w.expect(c, "", 0)
		return
	}
	if r, err := w.k.Start(w.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrShell) {
		w.Errorf("%+v, %v", r, err)
	}
	if state, _, err := w.k.Reconcile(w.Context(), c.ID, c.Handle, false); state != supervisor.Absent || err != nil {
		w.Errorf("%s, %v", state, err)
	}
}

func commands(w *world) {
	w.expect(w.a("echo one; echo two >&2; exit 3"), "one\ntwo\n", 3)
	w.expect(w.a("cat <<X\na $HOME_IS_NOT_SET b\nX"), "a  b\n", 0)
	w.expect(w.a("echo a # comment"), "a\n", 0)
	w.expect(w.a("printf 'no newline'"), "no newline", 0)
	w.expect(w.a("true"), "", 0)
	w.expect(w.a("test -t 0 && test -t 1 && test -t 2 && stty size"), "40 100\n", 0)
	w.expect(w.a("echo 'it'\\''s' \"$((1 + 1))\" \\\\"), "it's 2 \\\n", 0)
	w.expect(w.a("echo $PAGER $GIT_PAGER $SYSTEMD_PAGER $DEBIAN_FRONTEND $TERM"),
		"cat cat cat noninteractive xterm-256color\n", 0)
	if _, r := w.start(w.a("echo 'an open quote")); r.Exit == 0 {
		w.Error("a command with an open quote ended with 0")
	}
	w.expect(w.a("export ONE='a b' && mkdir -p 'x y/%é' && cd 'x y/%é'"), "", 0)
	s := w.a("echo \"$ONE\"; pwd")
	s.Cwd = "/"
	w.expect(s, "a b\n/\n", 0)
}

func once(w *world) {
	s := w.a("echo x >>witness; cat witness")
	w.expect(s, "x\n", 0)
	if _, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrBegun) {
		w.Errorf("a second start: %v", err)
	}
	s = w.a("echo y >>both; sleep 0.2; cat both")
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		k := w.open()
		wait.Go(func() { _, errs[i] = k.Start(w.Context(), s, io.Discard) })
	}
	wait.Wait()
	begun := 0
	for _, err := range errs {
		if err == nil {
			begun++
		} else if !errors.Is(err, supervisor.ErrBegun) {
			w.Error(err)
		}
	}
	if begun != 1 {
		w.Errorf("%d of 4 starts began it", begun)
	}
	w.expect(w.a("cat both"), "y\n", 0)
}

func limit(w *world) {
	for _, command := range []string{"sleep 1000", "trap '' INT; sleep 1000; sleep 1000",
		"trap '' INT TERM; while :; do sleep 1000; done"} {
		s := w.a("echo on; " + command)
		s.Limit = time.Second
		out, r := w.start(s)
		// On a busy machine the command may reach its time limit before it prints.
		if strings.Index(out, "on\n") > 0 || !r.TimedOut || r.Exit == 0 {
			w.Errorf("%q printed %q and ended as %+v", command, out, r)
		}
	}
}

func stop(w *world) {
	s := w.a("echo on; sleep 1000")
	out, ended := w.begin(s)
	if !out.wait("on") {
		w.Fatal("it does not begin to print")
	}
	for range 2 {
		if err := w.k.Stop(w.Context(), s.ID); err != nil {
			w.Error(err)
		}
	}
	if r := <-ended; !r.Stopped || r.Exit == 0 {
		w.Errorf("it ended as %+v", r)
	}
	later := w.a("echo never")
	if err := w.k.Stop(w.Context(), later.ID); err != nil {
		w.Error(err)
	}
	if _, err := w.k.Start(w.Context(), later, io.Discard); !errors.Is(err, supervisor.ErrNever) {
		w.Errorf("a start after a stop: %v", err)
	}
}

func settle(w *world) {
	h := w.k.Handle()
	s := w.a("echo $((6 * 7)); exit 4")
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, h, false); state != supervisor.Absent || err != nil {
		w.Errorf("before it: %s, %v", state, err)
	}
	w.start(s)
	if state, r, err := w.k.Reconcile(w.Context(), s.ID, h, false); state != supervisor.Done || r.Exit != 4 ||
		err != nil {
		w.Errorf("after it: %s, %+v, %v", state, r, err)
	}
	var out bytes.Buffer
	if r, err := w.k.Attach(w.Context(), s.ID, 0, &out); err != nil || r.Exit != 4 || w.host.PTY &&
		lines(out.String()) != "42\n" {
		w.Errorf("attached after it: %q, %+v, %v", out.String(), r, err)
	}
	s = w.a("echo x >>late")
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, h, true); state != supervisor.Never || err != nil {
		w.Errorf("forbidden: %s, %v", state, err)
	}
	if _, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrNever) {
		w.Errorf("a late start: %v", err)
	}
}

// personsShell types into the person's own shell, loses the connection, and attaches again.
func personsShell(w *world) {
	type attached struct {
		in     *io.PipeWriter
		out    *output
		resize chan supervisor.Size
		ended  chan error
	}
	open := func(size supervisor.Size) attached {
		r, in := io.Pipe()
		a := attached{in, &output{}, make(chan supervisor.Size), make(chan error, 1)}
		k := w.open()
		go func() {
			a.ended <- k.Shell(w.Context(), "shell-1", size, r, a.out, a.resize)
			_ = r.Close() // no input follows the end
		}()
		return a
	}
	a := open(supervisor.Size{Cols: 90, Rows: 30})
	say := func(line, want string) {
		w.Helper()
		_, _ = io.WriteString(a.in, line+"\r")
		if !a.out.wait(want) {
			w.Errorf("after %q the shell printed %q", line, a.out)
		}
	}
	say(`sh -c 'echo sum:$((20+3))'`, "sum:23")
	say("stty size", "30 90")
	a.resize <- supervisor.Size{Cols: 70, Rows: 20}
	say(`sh -c 'while test "$(stty size)" != "20 70"; do sleep 0.05; done; echo size$((1+1))'`, "size2")
	say(`cd /; sh -c 'echo product:$((8*8))'`, "product:64")
	_ = a.in.Close()
	if err := <-a.ended; err != nil {
		w.Error(err)
	}
	a = open(supervisor.Size{Cols: 60, Rows: 25})
	if w.host.PTY {
		if !a.out.wait("size2") {
			w.Errorf("attached again, it printed %q", a.out)
		}
		say(`sh -c 'echo in:$PWD:'`, "in:/:")
		say("stty size", "25 60")
	}
	say(`sh -c 'echo product:$((9*9))'`, "product:81")
	_, _ = io.WriteString(a.in, "exit\r")
	if err := <-a.ended; err != nil {
		w.Error(err)
	}
	_ = a.in.Close()
	if err := w.k.Close(w.Context(), "shell-1"); err != nil {
		w.Error(err)
	}
}

// output keeps the printed bytes, and signals when an expected text was printed.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	seen chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	if o.seen != nil && strings.Contains(o.buf.String(), o.want) {
		close(o.seen)
		o.seen = nil
	}
	return len(p), nil
}

// wait waits until want was printed, and reports whether it was.
func (o *output) wait(want string) bool {
	o.mu.Lock()
	seen := make(chan struct{})
	if strings.Contains(o.buf.String(), want) {
		close(seen)
	} else {
		o.want, o.seen = want, seen
	}
	o.mu.Unlock()
	select {
	case <-seen:
		return true
	case <-time.After(most):
		return false
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
