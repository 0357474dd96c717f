package supervisor_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// bomb is a shell function that forks 32 processes, each in its own session. They ignore every signal they can, and
// replace each process that is killed.
const bomb = `bomb() {
	if [ $1 -gt 0 ]; then
		bomb $(($1 - 1)) &
		bomb $(($1 - 1)) &
		wait
	else
		setsid sh -c 'trap "" HUP INT TERM; echo up >>ups; while :; do sleep 1000; done' &
	fi
}
bomb 5 & bomb 0; while [ "$(wc -l <ups)" -lt 33 ]; do sleep 0.05; done; echo on; trap '' INT TERM; wait`

// TestForkBomb stops a command that has forked as often as it could. None of its processes is left.
func TestForkBomb(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	k.Times.Term, k.Times.Kill = 200*time.Millisecond, 400*time.Millisecond
	out := &printed{want: "on", seen: make(chan bool)}
	seen := out.seen
	ended := make(chan supervisor.Result, 1)
	c := a("bomb", bomb)
	go func() {
		r, err := k.Start(t.Context(), c, out)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	select {
	case <-seen:
	case r := <-ended:
		t.Fatalf("it printed %q and ended as %+v", out, r)
	}
	check(t, k.Stop(t.Context(), c.ID))
	if r := <-ended; !r.Stopped || r.Exit == 0 {
		t.Errorf("it ended as %+v", r)
	}
	await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
}

// TestFullDisk fills the disk before a command or by it. A command that cannot be recorded is not started. For a
// command that was started, the reported result is either right or unknown.
func TestFullDisk(t *testing.T) {
	home := filepath.Join(t.TempDir(), "small disk")
	check(t, os.Mkdir(home, 0o700))
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", home)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("a small disk can be made by root alone: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", home).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	s := sshd.Start(t, sshd.Options{Home: home})
	k := open(t, s)
	fill := func() {
		f, err := os.Create(filepath.Join(home, "fill"))
		check(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		check(t, f.Close())
	}
	fill()
	c := a("no-room", "echo x >>/dev/null; exit 3")
	if _, err := k.Start(t.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrHome) {
		t.Errorf("with no room for its journal: %v", err)
	}
	if state, _, err := k.Reconcile(t.Context(), c.ID, k.Handle(), false); state != supervisor.Absent || err != nil {
		t.Errorf("with no room for its journal it is %s, %v", state, err)
	}
	check(t, os.Remove(filepath.Join(home, "fill")))
	if r, err := k.Start(t.Context(), c, io.Discard); err != nil || r.Exit != 3 {
		t.Errorf("with room again: %+v, %v", r, err)
	}
	for i, command := range []string{
		"head -c 2000000 /dev/zero >fill; echo on; exit 3",
		"head -c 2000000 /dev/zero | tr '\\0' x; exit 3", // the command's own output fills the disk
	} {
		c := a(fmt.Sprintf("fills-%d", i), command)
		out := &printed{}
		r, err := k.Start(t.Context(), c, out)
		state, again, err2 := k.Reconcile(t.Context(), c.ID, k.Handle(), false)
		switch {
		case err == nil && r.Exit == 3 && state == supervisor.Done && again.Exit == 3 && err2 == nil:
		case errors.Is(err, supervisor.ErrLost) && state == supervisor.Lost && err2 == nil:
		default:
			t.Errorf("%q ended as %+v, %v, and is %s, %+v, %v", command, r, err, state, again, err2)
		}
		if _, err := k.Start(t.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrBegun) {
			t.Errorf("%q was begun again: %v", command, err)
		}
		if i == 1 && !strings.Contains(out.String(), "left out, as the disk is full") {
			t.Errorf("of what it printed %d bytes came, and nothing says that there was more", out.Len())
		}
		_ = os.Remove(filepath.Join(home, "fill")) // it exists after one of the commands only
		_ = os.Remove(filepath.Join(home, ".countersign", c.ID, "out"))
	}
	await.That(t, "nothing is left", func() bool { return len(s.Processes()) == 0 })
}
