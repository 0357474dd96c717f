package demohost_test

import (
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/terminal/supervisor/supervisortest"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestKeeper runs the suite for hosts with the keeper's script on the demo host.
func TestKeeper(t *testing.T) {
	realpart.Long(t, "it plays the whole suite of the keeper")
	s := serve(t, filepath.Join(t.TempDir(), "host"))
	supervisortest.Run(t, supervisortest.Host{PTY: true, Bash: true, Dial: s.dial})
}

// TestSettleMeanwhile asks about commands while they start and end. None is ever lost.
func TestSettleMeanwhile(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "host"))
	k, err := supervisor.Open(t.Context(), s.dial(t))
	if err != nil {
		t.Fatal(err)
	}
	other, err := supervisor.Open(t.Context(), s.dial(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		c := supervisor.Start{ID: "act-" + strconv.Itoa(i), Command: "true", Grammar: "bash", Limit: await.Most}
		ended := make(chan error, 1)
		go func() {
			_, err := k.Start(t.Context(), c, io.Discard)
			ended <- err
		}()
		state := supervisor.Absent
		for state == supervisor.Absent || state == supervisor.Running {
			if state, _, err = other.Reconcile(t.Context(), c.ID, k.Handle(), false); err != nil {
				t.Fatal(err)
			}
		}
		if state != supervisor.Done {
			t.Errorf("command %d is %s", i, state)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestJournalsOfKilledServer kills a server while a command runs. The outcome of an ended command is known, a running
// command is lost, and one that was not started can start.
func TestJournalsOfKilledServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	var handle string
	start := func(id, command string) supervisor.Start {
		return supervisor.Start{ID: id, Command: command, Grammar: "bash", Limit: await.Most, Handle: handle}
	}
	t.Run("before", func(t *testing.T) {
		s := serve(t, dir)
		k, err := supervisor.Open(t.Context(), s.dial(t))
		if err != nil {
			t.Fatal(err)
		}
		handle = k.Handle()
		if _, err := k.Start(t.Context(), start("ended", "echo x; export A=1; exit 4"), io.Discard); err != nil {
			t.Fatal(err)
		}
		p := &person{t: t}
		go k.Start(t.Context(), start("running", "echo begun; sleep 1000; echo twice >> witness"), p)
		p.sees("begun")
	})
	s := serve(t, dir)
	k, err := supervisor.Open(t.Context(), s.dial(t))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]supervisor.State{"ended": supervisor.Done, "running": supervisor.Lost,
		"other": supervisor.Absent} {
		if state, r, err := k.Reconcile(t.Context(), id, handle, false); state != want || err != nil ||
			want == supervisor.Done && r.Exit != 4 {
			t.Errorf("%s: %s, %+v, %v", id, state, r, err)
		}
	}
	var out strings.Builder
	if _, err := k.Attach(t.Context(), "running", 0, &out); !errors.Is(err, supervisor.ErrLost) ||
		out.String() != "begun\r\n" {
		t.Errorf("attached: %q, %v", out.String(), err)
	}
	_, err = k.Start(t.Context(), start("running", "echo again"), io.Discard)
	if !errors.Is(err, supervisor.ErrBegun) {
		t.Errorf("begun again: %v", err)
	}
	out.Reset()
	if _, err := k.Start(t.Context(), start("other", "rm -r ~/.countersign; ls -a ~"), &out); err == nil {
		t.Errorf("with its journal deleted it ended as %q", out.String())
	}
	if state, _, err := k.Reconcile(t.Context(), "ended", handle, false); state != supervisor.Unknown || err != nil {
		t.Errorf("with the journals deleted: %s, %v", state, err)
	}
}
