// Package await waits in tests for a state that another process, a server or a browser will reach.
package await

import "time"

// Most is the longest wait. It only ends tests that hang; the product need not be that fast.
const Most = 5 * time.Minute

// longest is the longest pause between two checks. The pauses grow, so an early state is noticed early, and a busy
// machine has time for the awaited work.
const longest = 50 * time.Millisecond

// T is a test, or a program that acts as one.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// That waits until so returns true. It fails the test after five minutes. The message contains what, which describes
// the awaited state.
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
