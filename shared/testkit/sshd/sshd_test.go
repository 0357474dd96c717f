package sshd_test

import (
	"bytes"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// run returns the output of a line, and its exit code.
func run(t *testing.T, c *sshd.Conn, line string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	exit, err := c.Exec(t.Context(), supervisor.Exec{Line: line, Stdout: &out})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out.String(), exit
}

func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "zsh", "fish", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := sshd.Start(t, sshd.Options{Shell: shell, Env: []string{"ONE=a b"}})
			c := s.Dial()
			if got, exit := run(t, c, `printf '%s|%s|' "$HOME" "$ONE"; pwd; exit 3`); exit != 3 ||
				got != s.Home+"|a b|"+s.Home+"\n" {
				t.Errorf("got %q, exit %d", got, exit)
			}
			if got, _ := run(t, c, `sh -c 'tr "\000" " " </proc/$PPID/cmdline'; true`); !strings.Contains(got, map[string]string{"busybox": "/ash"}[shell]) ||
				shell != "busybox" && !strings.Contains(got, shell) {
				t.Errorf("the shell is %q", got)
			}
		})
	}
}

func TestTerminal(t *testing.T) {
	c := sshd.Start(t, sshd.Options{}).Dial()
	var out bytes.Buffer
	exit, err := c.Exec(t.Context(),
		supervisor.Exec{Line: "tty; stty size", Stdout: &out, PTY: &supervisor.Size{Cols: 100, Rows: 40}})
	if err != nil || exit != 0 || !strings.HasPrefix(out.String(), "/dev/pts/") ||
		!strings.HasSuffix(out.String(), "40 100\r\n") {
		t.Errorf("got %q, exit %d, %v", out.String(), exit, err)
	}
	if got, exit := run(t, c, `kill -TERM $$`); exit != 143 {
		t.Errorf("got %q, exit %d", got, exit)
	}
}

func TestPaths(t *testing.T) {
	without := sshd.Start(t, sshd.Options{Path: sshd.Without(t, "script", "bash")}).Dial()
	if got, exit := run(t, without, "command -v script bash; command -v ls >/dev/null"); got != "" || exit != 0 {
		t.Errorf("got %q, exit %d", got, exit)
	}
	busybox := sshd.Start(t, sshd.Options{Shell: "busybox", Path: sshd.Busybox(t)}).Dial()
	if got, exit := run(t, busybox, "command -v script bash; head --version 2>&1 | grep -c BusyBox"); got != "1\n" ||
		exit != 0 {
		t.Errorf("got %q, exit %d", got, exit)
	}
}

// TestSessionEnvironment checks that a session's environment does not contain the home directory of the user who runs
// the tests. The startup files of that user's shell would add it.
func TestSessionEnvironment(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	c := sshd.Start(t, sshd.Options{Path: "/usr/bin:/bin"}).Dial()
	got, _ := run(t, c, "env")
	for line := range strings.Lines(got) {
		if strings.Contains(line, me.HomeDir+"/") {
			t.Errorf("a session has %s", line)
		}
	}
}

// TestFaults cuts connections, kills the server and gives it other host keys. Running commands continue.
func TestFaults(t *testing.T) {
	s := sshd.Start(t, sshd.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	for _, fault := range []func(){s.Cut, s.Kill} {
		c := s.Dial()
		ended := make(chan error, 1)
		printed := &signal{seen: make(chan bool, 1)}
		go func() {
			line := "trap '' HUP; sleep 1000 & while ! grep -q ^sleep /proc/$!/cmdline; do :; done; echo on; wait"
			_, err := c.Exec(t.Context(), supervisor.Exec{Line: line, Stdout: printed})
			ended <- err
		}()
		<-printed.seen
		fault()
		if err := <-ended; err == nil {
			t.Error("the connection was not cut")
		}
		if left := s.Processes(); !slices.ContainsFunc(left,
			func(p sshd.Process) bool { return strings.HasPrefix(p.Args, "sleep 1000") }) {
			t.Errorf("the command was ended too; left are %v", left)
		}
		s.KillAll()
		if left := s.Processes(); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
	if _, err := s.TryDial(); err == nil {
		t.Error("a server that was killed answers")
	}
	before := s.HostKeys()
	s.Restart()
	s.Dial()
	s.Kill()
	s.NewHostKeys()
	s.Restart()
	for i, key := range s.HostKeys() {
		if key.Type() != before[i].Type() || bytes.Equal(key.Marshal(), before[i].Marshal()) {
			t.Errorf("host key %d is %s as before", i, key.Type())
		}
	}
	s.Dial()
	if !strings.Contains(fmt.Sprint(s.Log()), "Server listening") {
		t.Errorf("the log is %q", s.Log())
	}
}

// signal is a writer that reports its first write.
type signal struct{ seen chan bool }

func (s *signal) Write(p []byte) (int, error) {
	select {
	case s.seen <- true:
	default:
	}
	return len(p), nil
}
