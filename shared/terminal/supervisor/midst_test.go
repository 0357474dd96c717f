package supervisor_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// before returns a PATH in which the program first runs a line of sh. In this line, $j is the journal of the command
// "midst". The line runs only while that journal exists.
func before(t *testing.T, program, first string) string {
	path := sshd.Without(t, program)
	real, err := exec.LookPath(program)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(path, program), []byte("#!/bin/sh\nj=$HOME/.countersign/midst\n"+
		"if [ -d \"$j\" ]; then "+first+"; fi\nexec "+real+" \"$@\"\n"), 0o700))
	return path
}

// TestClaimInProgress asks about a command that another process has claimed without writing anything about it. That
// process writes while the caller waits.
func TestClaimInProgress(t *testing.T) {
	const ended = "printf 'on\\r\\n' >\"$j/out\"; echo 3:/:exited:10:0:4:. >\"$j/exit\""
	claim := func(t *testing.T, first string) *supervisor.Client {
		t.Parallel()
		s := sshd.Start(t, sshd.Options{Path: before(t, "sleep", first)})
		k := open(t, s)
		check(t, os.Mkdir(filepath.Join(s.Home, ".countersign", "midst"), 0o700))
		return k
	}
	for want, first := range map[supervisor.State]string{
		supervisor.Done:   ended,
		supervisor.Never:  `cp "${j%/*}/handle" "$j/never"`,
		supervisor.Absent: `rmdir "$j"`, // the process had no space to write
	} {
		t.Run(string(want), func(t *testing.T) {
			k := claim(t, first)
			handle := filepath.Join(k.Facts.Home, ".countersign", "handle")
			check(t, os.WriteFile(handle, []byte(k.Facts.Boot+" "+k.Facts.Stamp), 0o600))
			if state, _, err := k.Reconcile(t.Context(), "midst", k.Handle(), false); state != want || err != nil {
				t.Errorf("it is %s, %v", state, err)
			}
		})
	}
	t.Run("attach", func(t *testing.T) {
		k := claim(t, ended)
		var out strings.Builder
		r, err := k.Attach(t.Context(), "midst", 1, &out)
		if err != nil || r.Exit != 3 || out.String() != "n\r\n" {
			t.Errorf("it printed %q and ended as %+v, %v", out.String(), r, err)
		}
	})
	t.Run("attach later", func(t *testing.T) { // at first nothing is there
		k := claim(t, `if [ -e "$j/second" ]; then `+ended+`; fi; : >"$j/second"`)
		var out strings.Builder
		if r, err := k.Attach(t.Context(), "midst", 0, &out); err != nil || r.Exit != 3 || out.String() != "on\r\n" {
			t.Errorf("it printed %q and ended as %+v, %v", out.String(), r, err)
		}
	})
}

// TestInputDuringStart types for a command that starts while the host looks for it. The client must send the input
// again.
func TestInputDuringStart(t *testing.T) {
	s := sshd.Start(t, sshd.Options{Path: before(t, "grep", `mkfifo "$j/in" && echo /midst/1 >>"${j%/*}/stamp"`)})
	k := open(t, s)
	check(t, os.Mkdir(filepath.Join(s.Home, ".countersign", "midst"), 0o700))
	if err := k.Input(t.Context(), "midst", []byte("x\n")); !errors.Is(err, supervisor.ErrOther) {
		t.Error(err)
	}
}

// TestStoppedAtOnce stops a command that was claimed and does not run yet. It never runs.
func TestStoppedAtOnce(t *testing.T) {
	s := sshd.Start(t, sshd.Options{Path: before(t, "script", `: >"$j/stop"`)})
	r, err := open(t, s).Start(t.Context(), a("midst", "touch witness"), io.Discard)
	if err != nil || !r.Stopped || r.Exit != 130 {
		t.Errorf("it ended as %+v, %v", r, err)
	}
	if there(filepath.Join(s.Home, "witness")) {
		t.Error("it ran")
	}
}

// TestHangup loses the connection of a command's terminal, for each shell that may run the keeper. A command that does
// not use its terminal is ended. For one that ends by itself, the host also reports the output that was lost.
func TestHangup(t *testing.T) {
	for name, path := range map[string]func(t *testing.T) string{
		"dash": func(t *testing.T) string { return sshd.Without(t, "script") },
		"bash": func(t *testing.T) string {
			path := sshd.Without(t, "script", "sh")
			check(t, os.Symlink("/bin/bash", filepath.Join(path, "sh")))
			return path
		},
		"busybox": func(t *testing.T) string { return sshd.Busybox(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sshd.Start(t, sshd.Options{Path: path(t)})
			for _, command := range []string{"sleep 5; touch survived", "read x"} {
				hangUp(t, s, "echo on; "+command)
			}
			if there(filepath.Join(s.Home, "survived")) {
				t.Error("it went on")
			}
			await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
		})
	}
}

func hangUp(t *testing.T, s *sshd.Server, command string) {
	k := open(t, s)
	k.Times.Term, k.Times.Kill = 200*time.Millisecond, 400*time.Millisecond
	c := a(rand.Text(), command) // all hosts are one machine, where the end of a command ends every process with its ID
	c.Grammar = shell.POSIX
	loses(t, k, c, s.Cut)
	if r, err := open(t, s).Attach(t.Context(), c.ID, 0, io.Discard); err != nil || !r.Hangup {
		t.Errorf("%s: it ended as %+v, %v", command, r, err)
	}
}
