package supervisortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// nothingLeft waits until no process of a command runs on the host.
func (w *world) nothingLeft() {
	w.Helper()
	if w.host.Left == nil {
		return
	}
	var all []string
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if all = w.host.Left(); len(all) == 0 {
			return
		}
	}
	w.Errorf("left are %q", all)
}

// printing prints in many small parts, and more than the host keeps.
func printing(w *world) {
	s := w.a(`i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; done`)
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintln(&want, i+1)
	}
	w.expect(s, want.String(), 0)
	if !w.host.PTY {
		return
	}
	s = w.a(`i=0; while [ $i -lt 20 ]; do i=$((i+1)); printf '%0100000d' $i; done`) // 2 MB without a line end
	got, r := w.start(s)
	head, rest, _ := strings.Cut(got, "\n"+clip.Mark(2_000_000-1<<20-192<<10)+"\n")
	if r.Bytes != 2_000_000 || len(head) != 1<<20 || len(rest) != 192<<10 || !strings.HasSuffix(rest, "0020") {
		w.Errorf("of %d bytes %d and %d were kept", r.Bytes, len(head), len(rest))
	}
	out := &output{}
	again, err := w.k.Attach(w.Context(), s.ID, 1<<20+100, out)
	if err != nil || again.Bytes != r.Bytes || lines(out.String()) != got[1<<20+100:] {
		w.Errorf("attached again, %d bytes, %v; want %d", len(out.String()), err, len(got)-1<<20-100)
	}
	w.expect(w.a(`printf '\001\377\000\n'`), "\x01\xff\x00\n", 0)
}

// forged prints a copy of the keeper's last line with the stream's own mark.
func forged(w *world) {
	s := w.a(`m=$(cat /proc/*/cmdline 2>/dev/null | tr '\0' '\n' | sed -n 's/^mark=//p' | sort -u)
for x in $m aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; do printf '\n%s:0:/forged:exited:0:0:0\n' "$x"; done
sleep 0.1; echo after; exit 5`)
	got, r := w.start(s)
	if r.Exit != 5 || r.Cwd == "/forged" || !strings.HasSuffix(got, ":/forged:exited:0:0:0\nafter\n") {
		w.Errorf("it printed %q and ended as %+v", got, r)
	}
}

// hostile runs commands that attack the shell that they run in, or the keeper.
func hostile(w *world) {
	w.expect(w.a("exit 7"), "", 7)
	w.expect(w.a("set -e; false; echo not here"), "", 1)
	w.expect(w.a("exec >/dev/null; echo not here"), "", 0)
	w.expect(w.a("exec echo replaced"), "replaced\n", 0)
	w.expect(w.a("trap 'echo bye' EXIT; exit 2"), "bye\n", 2)
	w.expect(w.a("unset HOME PATH; echo on"), "on\n", 0)
	w.expect(w.a("echo still on; test -n \"$HOME\" || echo none"), "still on\nnone\n", 0)
	s := w.a("kill -KILL $$")
	if _, r := w.start(s); r.Exit != 137 {
		w.Errorf("a shell that killed itself ended as %+v", r)
	}
	s = w.a(":")
	s.Cwd = "/is/not/there"
	if _, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrCwd) {
		w.Errorf("in a directory that is not there: %v", err)
	}
	state, _, err := w.k.Reconcile(w.Context(), s.ID, w.k.Handle(), false)
	if state != supervisor.Absent || err != nil {
		w.Errorf("after that: %s, %v", state, err)
	}
	h := w.k.Handle()
	s = w.a("cd; rm -rf .countersign; echo gone; sleep 1000")
	s.Limit = 20 * time.Second // even a busy host has deleted it by then
	s.Terminal = "wiped"
	if _, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrLost) {
		w.Errorf("a command that deleted its journal: %v", err)
	}
	w.nothingLeft()
	w.k = w.open()
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, h, true); state != supervisor.Unknown || err != nil {
		w.Errorf("without its journal: %s, %v", state, err)
	}
	s.Handle = h
	if _, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrOther) {
		w.Errorf("a second start without its journal: %v", err)
	}
	if err := w.k.Stop(w.Context(), s.ID); err != nil {
		w.Error(err)
	}
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, h, true); state != supervisor.Unknown || err != nil {
		w.Errorf("without its journal, and forbidden since: %s, %v", state, err)
	}
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, w.k.Handle(), true); state != supervisor.Never || err != nil {
		w.Errorf("forbidden by the host that does not know of it: %s, %v", state, err)
	}
	w.expect(w.a("echo on"), "on\n", 0)
}

// plain runs read-only commands after other commands have changed everything that they could.
func plain(w *world) {
	w.expect(w.a("export EVIL=1 PATH=/is/not/there GIT_PAGER=evil; cd /"), "", 0)
	w.expect(w.a("echo $EVIL $PATH"), "1 /is/not/there\n", 0)
	s := w.a("ls -d /; printenv EVIL; printenv GIT_PAGER; printenv HOME")
	s.Plain = true
	w.expect(s, "/\ncat\n/nonexistent\n", 0)
	s = w.a("cd /; export EVIL=2")
	s.Plain = true
	if r := w.expect(s, "", 0); r.Cwd == "/" {
		w.Errorf("a command that only looks has left its directory: %+v", r)
	}
	w.expect(w.a("echo $EVIL"), "1\n", 0)
}

// left leaves processes behind.
func left(w *world) {
	for command, least := range map[string]int{
		"sleep 1000 & sleep 1000 & echo on":                                 2,
		"(sleep 1000 >/dev/null 2>&1 </dev/null &); echo on":                1,
		"setsid sleep 1000 >/dev/null 2>&1 </dev/null & sleep 0.1; echo on": 1,
		"trap '' HUP TERM; sleep 1000 & echo on":                            1,
		"if type nohup >/dev/null; then nohup sleep 1000 >/dev/null 2>&1 & " +
			"else sleep 1000 & fi; sleep 0.1; echo on": 1,
	} {
		out, r := w.start(w.a(command))
		if out != "on\n" || r.Exit != 0 || w.host.Left != nil && r.Left < least {
			w.Errorf("%q printed %q and ended as %+v", command, out, r)
		}
		if w.host.Left != nil && (len(r.Ended) == 0 || slices.ContainsFunc(r.Ended, foreign)) {
			w.Errorf("%q has left %q", command, r.Ended)
		}
		w.nothingLeft()
	}
}

// foreign reports whether a process with this name is none of those that left leaves behind. A process first has the
// name of the shell or program that starts it, and may be seen with that name.
func foreign(name string) bool {
	return !slices.Contains([]string{"sleep", "busybox", "setsid", "nohup", "sh", "bash", "dash", "ash"}, name)
}

// input types input for a command that waits for it, and for one that does not.
func input(w *world) {
	w.k.Times.Patience = time.Minute
	asked := make(chan bool, 10)
	s := w.a(`stty -echo; printf 'Password: '; read x; stty echo; echo; printf 'Name? '; read y; echo "${#x} $y"`)
	s.Asks = func(asks bool) { asked <- asks }
	if err := w.k.Input(w.Context(), s.ID, []byte("early\n")); !errors.Is(err, supervisor.ErrOther) {
		w.Errorf("input before the beginning: %v", err)
	}
	out, ended := w.begin(s)
	if !w.host.PTY { // only the owner of the channel's terminal can type into it
		if !out.wait("Password: ") {
			w.Errorf("it printed %q", out)
		}
		if err := w.k.Stop(w.Context(), s.ID); err != nil {
			w.Error(err)
		}
		<-ended
		return
	}
	if !out.wait("Password: ") {
		w.Errorf("it printed %q", out)
	}
	select {
	case asks := <-asked:
		if !asks {
			w.Error("the command no longer asked for input, although it had just asked")
		}
	case <-time.After(20 * time.Second):
		w.Error("no reader was notified that it waits for input")
	}
	if err := w.k.Input(w.Context(), s.ID, []byte("hunter2\n")); err != nil {
		w.Error(err)
	}
	if !out.wait("Name? ") {
		w.Errorf("it printed %q", out)
	}
	if err := w.k.Input(w.Context(), s.ID, []byte("Ann\n")); err != nil {
		w.Error(err)
	}
	if r := <-ended; r.Exit != 0 || lines(out.String()) != "Password: \nName? Ann\n7 Ann\n" {
		w.Errorf("it printed %q and ended as %+v", out, r)
	}
	if err := w.k.Input(w.Context(), s.ID, []byte("late\n")); !errors.Is(err, supervisor.ErrEnded) {
		w.Errorf("input after the end: %v", err)
	}

	w.k.Times.Patience = short.Patience
	got, r := w.start(w.a(`printf 'Really? '; read x; echo $x`))
	if !r.Asked || !strings.HasPrefix(got, "Really? ") {
		w.Errorf("it printed %q and ended as %+v", got, r)
	}
	if got, r = w.start(w.a("sleep 1; echo on")); r.Asked || got != "on\n" {
		w.Errorf("a command that is only slow printed %q and ended as %+v", got, r)
	}
}

// held detaches a person after a command has asked for input. The command waits while the person is attached.
func held(w *world) {
	if !w.host.PTY {
		return
	}
	s := w.a("echo on; while [ ! -e held-go ]; do sleep 0.05; done; printf 'Name? '; read x")
	_, ended := w.begin(s)
	k := w.open()
	ctx, leave := context.WithCancel(w.Context())
	defer leave()
	asked, left := make(chan bool, 10), make(chan error, 1)
	out := &output{}
	go func() {
		for { // until it has begun
			_, err := k.Attach(ctx, s.ID, 0, out, supervisor.Hold(), supervisor.Asks(func(asks bool) { asked <- asks }))
			if !errors.Is(err, supervisor.ErrOther) {
				left <- err
				return
			}
		}
	}()
	if !out.wait("on") {
		w.Errorf("attached, it printed %q", out)
	}
	w.expect(w.a("touch held-go"), "", 0)
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		w.Error("no reader was notified that it waits for input")
	}
	select {
	case r := <-ended:
		w.Errorf("it did not wait for who is there, and ended as %+v", r)
	case <-time.After(4 * short.Patience): // the absence of an event takes time to observe
		leave()
		<-left
		if r := <-ended; !r.Asked {
			w.Errorf("left alone, it ended as %+v", r)
		}
	}
}

// running checks a running command from another connection.
func running(w *world) {
	h := w.k.Handle()
	s := w.a("echo on; while [ ! -e go ]; do sleep 0.05; done; echo over; exit 6")
	out, ended := w.begin(s)
	if !out.wait("on") {
		w.Errorf("it printed %q", out)
	}
	k := w.open()
	for _, never := range []bool{false, true} {
		if state, _, err := k.Reconcile(w.Context(), s.ID, h, never); state != supervisor.Running || err != nil {
			w.Errorf("while it runs: %s, %v", state, err)
		}
	}
	attached := &output{}
	also := make(chan supervisor.Result, 1)
	go func() {
		r, err := k.Attach(w.Context(), s.ID, 2, attached)
		if err != nil {
			w.Error(err)
		}
		also <- r
	}()
	w.expect(w.a("touch go"), "", 0)
	if r := <-ended; r.Exit != 6 || lines(out.String()) != "on\nover\n" {
		w.Errorf("it printed %q and ended as %+v", out, r)
	}
	if r := <-also; r.Exit != 6 || w.host.PTY && lines(attached.String()) != "\nover\n" {
		w.Errorf("attached, it printed %q and ended as %+v", attached, r)
	}
}
