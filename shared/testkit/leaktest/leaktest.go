// Package leaktest checks that no goroutine runs after the tests of a package: each test must stop the goroutines that
// it started.
package leaktest

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/seed"
)

// Main fixes the seed of property tests, runs the tests, calls ends to stop shared parts, and fails if a goroutine is
// left. TestMain calls it. It does not return.
func Main(m *testing.M, ends ...func() error) {
	seed.Fix()
	code := m.Run()
	for _, end := range ends {
		if err := end(); err != nil {
			code = failed("what the tests had in common does not end: %v", err)
		}
	}
	http.DefaultClient.CloseIdleConnections() // idle connections are not leaks
	outbound.Transport().CloseIdleConnections()
	if code == 0 {
		if err := left(); err != nil {
			code = failed("a goroutine outlives the tests: %v", err)
		}
	}
	os.Exit(code)
}

// left returns an error that names the goroutines that are left. It gives them a minute to end.
func left() (err error) {
	for end := time.Now().Add(await.Most); ; {
		if err = goleak.Find(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func failed(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	return 1
}
