package demohost

import "testing"

// TestBackground has commands end while programs that they have put into the background begin: whoever looks for
// races sees that these are counted without one, and none of them begins after its command.
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
