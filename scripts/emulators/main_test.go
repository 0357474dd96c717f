package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestServe reads the two addresses, finds both emulators there, and finds neither once the input has ended.
func TestServe(t *testing.T) {
	realpart.Emulators.Take(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	in, end := io.Pipe()
	printed, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(t.Context(), in, out, io.Discard)
		out.Close()
		served <- err
	}()
	var addrs []string
	lines := bufio.NewScanner(printed)
	for len(addrs) < 2 && lines.Scan() {
		_, addr, ok := strings.Cut(lines.Text(), "_EMULATOR_HOST=")
		if !ok || !strings.HasPrefix(lines.Text(), "export ") {
			t.Fatalf("not a line for a shell: %q", lines.Text())
		}
		dials(t, addr, true)
		addrs = append(addrs, addr)
	}
	end.Close()
	switch err := <-served; {
	case errors.Is(err, emulators.ErrAbsent):
		realpart.Emulators.Absent(t, err.Error())
	case err != nil || len(addrs) != 2:
		t.Fatalf("%d addresses, then: %v", len(addrs), err)
	}
	for _, addr := range addrs {
		dials(t, addr, false)
	}
}

func dials(t *testing.T, addr string, want bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if (err == nil) != want {
		t.Errorf("dial %s: %v; want a connection: %t", addr, err, want)
	}
	if err == nil {
		c.Close()
	}
}
