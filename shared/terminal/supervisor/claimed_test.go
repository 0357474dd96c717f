package supervisor_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestJournalDeletedByCommand makes a command delete its own journal, but not the stamp. The keeper still knows that
// the command was started, so the command is not started again and is never reported as not started.
func TestJournalDeletedByCommand(t *testing.T) {
	for _, shell := range []string{"bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			s := sshd.Start(t, sshd.Options{Shell: shell})
			k, err := supervisor.Open(t.Context(), s.Dial())
			if err != nil {
				t.Fatal(err)
			}
			id := rand.Text()
			command := "echo ran >> witness; while [ -d .countersign/" + id + " ]; do rm -rf .countersign/" + id +
				"; done; echo gone >> witness"
			c := supervisor.Start{ID: id, Command: command, Grammar: "bash", Limit: await.Most,
				Handle: k.Handle()}
			ctx, cancel := context.WithTimeout(t.Context(), await.Most)
			defer cancel()
			if _, err := k.Start(ctx, c, io.Discard); !errors.Is(err, supervisor.ErrLost) {
				t.Errorf("how it ended is said to be %v", err)
			}
			for _, never := range []bool{false, true} {
				if state, _, err := k.Reconcile(t.Context(), c.ID, c.Handle, never); state != supervisor.Unknown ||
					err != nil {
					t.Errorf("it is %s, %v", state, err)
				}
			}
			if err := k.Stop(t.Context(), c.ID); err != nil {
				t.Error(err)
			}
			state, _, err := k.Reconcile(t.Context(), c.ID, c.Handle, true)
			if state != supervisor.Unknown || err != nil {
				t.Errorf("stopped, it is %s, %v", state, err)
			}
			if _, err := k.Start(t.Context(), c, io.Discard); !errors.Is(err, supervisor.ErrBegun) {
				t.Errorf("begun again: %v", err)
			}
			if got := witness(s); got != "ran\ngone\n" {
				t.Errorf("it ran as %q", got)
			}
		})
	}
}

// TestJournalDeletedInPart makes a command delete files of the keeper and run for a long time. The keeper ends the
// command soon, because it can neither watch nor stop it. The command is never reported as not started.
func TestJournalDeletedInPart(t *testing.T) {
	t.Parallel()
	for i, remove := range []string{"rm -rf .countersign/ID", "rm -f .countersign/ID/*", "rm -rf .countersign"} {
		t.Run(remove, func(t *testing.T) {
			t.Parallel()
			s := sshd.Start(t, sshd.Options{})
			k := open(t, s)
			c := a("part-"+strconv.Itoa(i), "")
			c.Command = "echo here; until [ -e go ]; do sleep 0.05; done; " + strings.ReplaceAll(remove, "ID", c.ID) +
				"; echo gone; sleep 1000"
			c.Handle = k.Handle()
			out := &printed{want: "here", seen: make(chan bool)} // the output is read before it is deleted
			here, gone := out.seen, make(chan bool)
			ended := make(chan error, 1)
			go func() {
				_, err := k.Start(t.Context(), c, out)
				ended <- err
			}()
			wait := func(seen chan bool) {
				select {
				case <-seen:
				case err := <-ended:
					t.Fatalf("it ended with %v, and printed %q", err, out)
				}
			}
			wait(here)
			if err := os.WriteFile(filepath.Join(s.Home, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out.await("gone", gone)
			wait(gone)
			other := open(t, s)
			for _, never := range []bool{false, true} {
				state, _, err := other.Reconcile(t.Context(), c.ID, c.Handle, never)
				if state == supervisor.Never || state == supervisor.Absent || err != nil {
					t.Errorf("begun, it is %s, %v", state, err)
				}
			}
			if _, err := other.Attach(t.Context(), c.ID, 0, io.Discard); err != nil && // it may have ended by now
				!errors.Is(err, supervisor.ErrLost) && !errors.Is(err, supervisor.ErrOther) {
				t.Errorf("attached to it: %v", err)
			}
			if i != 1 { // a command whose journal is left is stopped like any other
				if err := other.Stop(t.Context(), c.ID); err != nil {
					t.Error(err)
				}
			}
			err := <-ended
			state, _, err2 := other.Reconcile(t.Context(), c.ID, c.Handle, true)
			forgotten := state == supervisor.Never || state == supervisor.Absent
			if forgotten || errors.Is(err, supervisor.ErrLost) && state == supervisor.Done || err2 != nil {
				t.Errorf("it ended with %v, and is %s, %v", err, state, err2)
			}
		})
	}
}

// TestStampTrimmed starts commands until their list is long. The keeper removes those that were started a week ago or
// before the last boot, and no others.
func TestStampTrimmed(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	k := open(t, s)
	stamp := filepath.Join(s.Home, ".countersign", "stamp")
	if _, err := k.Start(t.Context(), a("first", "rm -rf .countersign/first"), io.Discard); err == nil {
		t.Error("how it ended is known")
	}
	before, err := os.ReadFile(stamp)
	if err != nil {
		t.Fatal(err)
	}
	long := string(before)
	for i := range 5000 {
		long += fmt.Sprintf("/before-the-boot-%d/%d\n", i, int64(1)<<50)
	}
	if err := os.WriteFile(stamp, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	h := k.Handle()
	await.That(t, "the list is as short as it was", func() bool {
		k = open(t, s)
		after, err := os.ReadFile(stamp)
		check(t, err)
		return string(after) == string(before)
	})
	if state, _, err := k.Reconcile(t.Context(), "first", h, true); state != supervisor.Unknown || err != nil {
		t.Errorf("what was begun is %s, %v", state, err)
	}
}

func witness(s *sshd.Server) string {
	text, _ := os.ReadFile(filepath.Join(s.Home, "witness")) // it is not there yet
	return string(text)
}
