package testkit

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// Open is like [New] for a test. The deployment ends with the test. If o names no directory, the store is in a
// temporary one.
func Open(t testing.TB, o Options) *Deployment {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := New(t.Context(), o)
	return cleanup.Close(t, d, err)
}
