// Package leaktest ends the tests of a package with the question whether a goroutine is left: whatever a test starts, its
// end has to stop.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests, ends what they had in common, and fails them where a goroutine is left even so. It is called by
// TestMain and does not return.
func Main(m *testing.M, ends ...func() error) {
	code := m.Run()
	for _, end := range ends {
		if err := end(); err != nil {
			code = failed("what the tests had in common does not end: %v", err)
		}
	}
	http.DefaultClient.CloseIdleConnections() // they wait to be used again, which is what they are for
	if err := goleak.Find(); err != nil && code == 0 {
		code = failed("a goroutine outlives the tests: %v", err)
	}
	os.Exit(code)
}

func failed(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return 1
}
