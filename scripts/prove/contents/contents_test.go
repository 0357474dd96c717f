package main

import (
	"context"
	"os"
	"testing"
)

// kinds lists the cases that a series must have met to prove anything.
var kinds = []string{
	"requests", "responses compared", "parallel calls", "correction", "model error", "call made again",
	"asked while something waits", "long thread",
	"expired", "cancelled", "process died", "tool withdrawn", "edits told", "decided approve_once",
	"decided approve_and_always_allow_recipient",
	"decided approve_with_edits", "decided reject", "decided confirm_done", "decided start_new",
}

// TestContents makes well over a thousand requests, none of which is refused or has false content. A fault names the
// seed that repeats it: go run ./scripts/prove/contents -seed N -stories 1.
func TestContents(t *testing.T) {
	got := series(context.Background(), 2000, 0, 1500, nil, os.Stdout)
	if got.faults > 0 {
		t.Errorf("%d faults", got.faults)
	}
	for _, k := range kinds {
		if got.count[k] == 0 {
			t.Errorf("no story had: %s", k)
		}
	}
	t.Logf("%d requests in %s", got.count["requests"], got.took)
}

// TestContentsOverTheWire sends the requests of a few stories through Google's client.
func TestContentsOverTheWire(t *testing.T) {
	over, err := newWire()
	if err != nil {
		t.Fatal(err)
	}
	defer over.server.Close()
	got := series(context.Background(), 1_000_000, 0, 200, over, os.Stdout)
	if got.faults > 0 {
		t.Errorf("%d faults", got.faults)
	}
	if n := len(over.fake.Requests()); n < 200 {
		t.Errorf("%d requests came over the wire", n)
	}
}
