// Package await waits in tests for a state that something else brings about: another process, a server, a browser.
package await

import "time"

// Most is how long a test waits. It ends a test that hangs; it is no limit that a product has to keep.
const Most = time.Minute

// longest is the longest pause between two looks. The pauses grow, so an early state is seen early and a busy machine
// has time for the awaited work.
const longest = 50 * time.Millisecond

// T is a test, or a program that acts as one.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// That waits until so returns true. It fails the test after a minute; the message contains what, the awaited state.
func That(t T, what string, so func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(Most); !so(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", Most, what)
		}
		pause = min(2*pause, longest)
	}
}
