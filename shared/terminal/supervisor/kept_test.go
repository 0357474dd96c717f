package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestHold lets a command wait for input beyond the limit that applies while no user is attached. It continues waiting,
// because a user is attached.
func TestHold(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	k.Times.Quiet, k.Times.Patience = 100*time.Millisecond, 300*time.Millisecond
	c := a("held", "echo on; read x; echo got $x")
	out := &printed{want: "on", seen: make(chan bool)}
	seen := out.seen
	ended := make(chan supervisor.Result, 1)
	c.Command = "while [ ! -e go ]; do sleep 0.05; done; " + c.Command
	go func() {
		r, err := k.Start(t.Context(), c, out)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	journal := filepath.Join(s.Home, ".countersign", c.ID)
	await.That(t, "it has begun", func() bool { return there(filepath.Join(journal, "follower")) })
	attached := make(chan error, 1)
	other := open(t, s)
	go func() {
		_, err := other.Attach(t.Context(), c.ID, 0, io.Discard, supervisor.Hold())
		attached <- err
	}()
	await.That(t, "somebody holds it", func() bool {
		holders, err := filepath.Glob(filepath.Join(journal, "holder.*"))
		return err == nil && len(holders) == 1
	})
	if err := os.WriteFile(filepath.Join(s.Home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-seen
	await.That(t, "it asks", func() bool { return there(filepath.Join(journal, "asks")) })
	select {
	case r := <-ended:
		t.Errorf("it ended as %+v", r)
	case <-time.After(4 * k.Times.Patience): // it takes time to see that nothing happens
	}
	if err := other.Input(t.Context(), c.ID, []byte("x\n")); err != nil {
		t.Error(err)
	}
	if r := <-ended; r.Asked || r.Exit != 0 || !strings.HasSuffix(out.String(), "got x\r\n") {
		t.Errorf("it printed %q and ended as %+v", out, r)
	}
	if err := <-attached; err != nil {
		t.Error(err)
	}
}

// TestInputDuringCheck types the answer while the host checks whether the command waits for it. The command then works
// without printing anything, and is not reported as waiting.
func TestInputDuringCheck(t *testing.T) {
	path := sshd.Without(t, "stty")
	stty, err := exec.LookPath("stty")
	check(t, err)
	slow := fmt.Sprintf("#!/bin/sh\nout=$(%s \"$@\")\nstatus=$?\n"+
		"if [ \"$1\" = -a ] && [ -e ~/hold ]; then true >~/looks; while [ -e ~/hold ]; do sleep 0.05; done; fi\n"+
		"printf '%%s\\n' \"$out\"\nexit $status\n", stty)
	check(t, os.WriteFile(filepath.Join(path, "stty"), []byte(slow), 0o700))
	s := sshd.Start(t, sshd.Options{Path: path})
	k := open(t, s)
	k.Times.Quiet = 100 * time.Millisecond
	home := func(name string) string { return filepath.Join(s.Home, name) }
	check(t, os.WriteFile(home("hold"), nil, 0o600))
	c := a("slow-look", "read -rs x; true >got; while [ ! -e go ]; do sleep 0.05; done; echo got $x")
	var asked atomic.Bool
	c.Asks = func(asks bool) { asked.Store(asked.Load() || asks) }
	ended := make(chan supervisor.Result, 1)
	go func() {
		r, err := k.Start(t.Context(), c, io.Discard)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	await.That(t, "the host looks", func() bool { return there(home("looks")) })
	check(t, open(t, s).Input(t.Context(), c.ID, []byte("x\n")))
	await.That(t, "it has the answer", func() bool { return there(home("got")) })
	check(t, os.Remove(home("looks")))
	check(t, os.Remove(home("hold")))
	journal := home(filepath.Join(".countersign", c.ID))
	await.That(t, "the look is over", func() bool { return !there(filepath.Join(journal, "typed")) })
	check(t, os.WriteFile(home("go"), nil, 0o600))
	if r := <-ended; r.Exit != 0 || asked.Load() {
		t.Errorf("reported as waiting: %t; ended as %+v", asked.Load(), r)
	}
}

// TestPruning checks that the host deletes journals after a week, and all output but that of the last fifty commands.
func TestPruning(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	h := k.Handle()
	run := func(id string) {
		t.Helper()
		if r, err := k.Start(t.Context(), a(id, "echo on; exit 3"), io.Discard); err != nil || r.Exit != 3 {
			t.Fatal(r, err)
		}
	}
	run("week")
	run("first")
	journals := filepath.Join(s.Home, ".countersign")
	for i := range 55 { // their ages in hours
		cmd := exec.Command("sh", "-c", fmt.Sprintf(
			`cp -a first hour-%d && touch -d "%d hours ago" hour-%[1]d/cmd hour-%[1]d/boot`, i, i+1))
		cmd.Dir = journals
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	cmd := exec.Command("touch", "-d", "9 days ago", "week/boot")
	cmd.Dir = journals
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	k = open(t, s) // which prunes
	await.That(t, "the old ones are gone", func() bool {
		return !there(filepath.Join(journals, "week")) && !there(filepath.Join(journals, "hour-54", "cmd"))
	})
	for i := range 55 {
		if kept := there(filepath.Join(journals, fmt.Sprintf("hour-%d", i), "out")); kept != (i < 49) {
			t.Errorf("of that of %d hours ago, the output is there: %t", i+1, kept)
		}
	}
	var out bytes.Buffer
	for id, want := range map[string]supervisor.State{"week": supervisor.Unknown, "hour-54": supervisor.Done,
		"first": supervisor.Done} {
		state, r, err := k.Reconcile(t.Context(), id, h, true)
		if state != want || err != nil || want == supervisor.Done && r.Exit != 3 {
			t.Errorf("%s is %s, %+v, %v", id, state, r, err)
		}
	}
	if r, err := k.Attach(t.Context(), "hour-54", 0, &out); err != nil || r.Exit != 3 || out.Len() != 0 {
		t.Errorf("what has lost its output: %q, %+v, %v", out.String(), r, err)
	}
	if _, err := k.Start(t.Context(), a("hour-54", "true"), io.Discard); !errors.Is(err, supervisor.ErrBegun) {
		t.Errorf("begun again: %v", err)
	}
}

// person is a person at a shell of their own.
type person struct {
	in    *io.PipeWriter
	out   *printed
	seen  chan bool // closed when the expected text was printed
	ended chan error
}

// sit attaches a person who waits for a text from the shell.
func sit(t *testing.T, k *supervisor.Client, want string) person {
	r, in := io.Pipe()
	p := person{in: in, seen: make(chan bool), ended: make(chan error, 1)}
	p.out = &printed{want: want, seen: p.seen}
	go func() {
		p.ended <- k.Shell(t.Context(), "one", supervisor.Size{Cols: 80, Rows: 24}, r, p.out, nil)
		_ = r.Close() // no input follows for a shell that has ended
	}()
	return p
}

// wait waits for the text.
func (p person) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.seen:
	case err := <-p.ended:
		t.Fatal("the shell has ended: ", err)
	case <-time.After(await.Most):
		out := p.out.String()
		t.Fatalf("%d bytes came, at last %q", len(out), out[max(0, len(out)-200):])
	}
}

// TestShellRace attaches several clients at once where no shell exists. All get the same shell, and nothing is left of
// it afterwards.
func TestShellRace(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	var ks [4]*supervisor.Client
	for i := range ks {
		ks[i] = open(t, s)
	}
	its := regexp.MustCompile(`pid=([0-9]+)\.`)
	for range 10 {
		var all [len(ks)]person
		for i, k := range ks {
			all[i] = sit(t, k, "here42")
		}
		shells := map[string]bool{}
		for _, p := range all {
			_, _ = io.WriteString(p.in, "echo pid=$$. here$((40+2))\r")
			p.wait(t)
			for _, found := range its.FindAllStringSubmatch(p.out.String(), -1) {
				shells[found[1]] = true
			}
		}
		if len(shells) != 1 {
			t.Fatalf("there are the shells %v", shells)
		}
		_, _ = io.WriteString(all[0].in, "exit\r")
		for _, p := range all {
			check(t, <-p.ended)
		}
		await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
		check(t, ks[0].Close(t.Context(), "one"))
	}
}

// TestShellWithoutStart tests a shell that cannot start. It must not be reported as ended.
func TestShellWithoutStart(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	check(t, os.WriteFile(filepath.Join(s.Home, ".countersign", "terminals"), nil, 0o600))
	if err := <-sit(t, k, "").ended; !errors.Is(err, supervisor.ErrHome) {
		t.Errorf("where nothing can be written: %v", err)
	}
	check(t, os.RemoveAll(filepath.Join(s.Home, ".countersign")))
	if err := <-sit(t, k, "").ended; !errors.Is(err, supervisor.ErrOther) {
		t.Errorf("without the keeper: %v", err)
	}
}

// TestShellWithoutReader checks that a shell without a reader ends after its time limit.
func TestShellWithoutReader(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	k.Times.Idle = 500 * time.Millisecond
	p := sit(t, k, "on42")
	_, _ = io.WriteString(p.in, "sleep 1; echo on$((40+2))\r") // it stays while it is read
	p.wait(t)
	_ = p.in.Close()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
}

// TestShellRing lets a shell print more than is kept. An attached reader gets all of it, a later reader gets the last
// part, and the disk does not fill.
func TestShellRing(t *testing.T) {
	for _, tail := range []string{"GNU's", "busybox's"} {
		t.Run(tail, func(t *testing.T) {
			t.Parallel()
			o := sshd.Options{}
			if tail == "busybox's" {
				o.Path = sshd.Without(t, "tail")
				check(t, os.Symlink(filepath.Join(sshd.Busybox(t), "tail"), filepath.Join(o.Path, "tail")))
			}
			s := sshd.Start(t, o)
			p := sit(t, open(t, s), "over42")
			_, _ = io.WriteString(p.in, "yes 123456789 | head -n 120000; echo over$((40+2))\r") // 1.3 MB
			p.wait(t)
			_ = p.in.Close()
			check(t, <-p.ended)
			if n := strings.Count(p.out.String(), "123456789\r\n"); n != 120_000 {
				t.Errorf("%d lines came", n)
			}
			p = sit(t, open(t, s), "over42")
			p.wait(t)
			if again := p.out.Len(); again < 256<<10 || again > 3*256<<10 {
				t.Errorf("%d bytes came again", again)
			}
			parts, err := filepath.Glob(filepath.Join(s.Home, ".countersign", "terminals", "one", "shell", "part.*"))
			check(t, err)
			size := int64(0)
			for _, part := range parts {
				info, err := os.Stat(part)
				check(t, err)
				size += info.Size()
			}
			if size > 3*256<<10 {
				t.Errorf("%d bytes lie on the disk in %d parts", size, len(parts))
			}
			_, _ = io.WriteString(p.in, "exit\r")
			check(t, <-p.ended)
		})
	}
}

// TestShellSlowReader stops reading a shell. The shell continues after a short time, and the reader is informed of the
// output that it missed.
func TestShellSlowReader(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	k.Times.Idle = 10 * time.Second // far more than the reader needs
	p := sit(t, k, "on42")
	_, _ = io.WriteString(p.in, "echo on$((40+2))\r")
	p.wait(t)
	signal := func(signal syscall.Signal) {
		for _, process := range s.Processes() {
			if strings.HasPrefix(process.Args, "tail -s") {
				check(t, syscall.Kill(process.PID, signal))
			}
		}
	}
	await.That(t, "it is read", func() bool {
		return slices.ContainsFunc(s.Processes(),
			func(p sshd.Process) bool { return strings.HasPrefix(p.Args, "tail -s") })
	})
	signal(syscall.SIGSTOP)
	_, _ = io.WriteString(p.in, "yes 123456789 | head -n 120000; touch went-on; echo over$((40+3))\r")
	await.That(t, "the shell goes on", func() bool { return there(filepath.Join(s.Home, "went-on")) })
	seen := make(chan bool)
	p.out.await("over43", seen)
	signal(syscall.SIGCONT)
	select {
	case <-seen:
	case <-time.After(await.Most):
		t.Errorf("the end does not come, after %d bytes", p.out.Len())
	}
	if !strings.Contains(p.out.String(), " bytes left out …]\r\n") {
		t.Errorf("they are not told that %d bytes are not all", p.out.Len())
	}
	_, _ = io.WriteString(p.in, "exit\r")
	check(t, <-p.ended)
}
