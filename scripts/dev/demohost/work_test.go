package demohost

import "testing"

// TestBackground ends commands while their background programs start. The race detector checks how the host counts
// these programs. No program starts after its command has ended.
func TestBackground(t *testing.T) {
	h := openTest(t)
	for range 100 {
		if out, code := h.say(t, "sleep 60 & sleep 60 & while :; do touch /tmp/alive; done &"); out != "" || code != 0 {
			t.Fatalf("%d: %s", code, out)
		}
		if err := h.machine.disk.root.RemoveAll("tmp/alive"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.machine.disk.stat("/tmp/alive"); err == nil {
			t.Fatal("a program has begun after its command")
		}
	}
}
