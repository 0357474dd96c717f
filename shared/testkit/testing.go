package testkit

import "testing"

// Open is [New] for a test. The deployment ends with the test. If o names no directory, the store is in a temporary
// one.
func Open(t testing.TB, o Options) *Deployment {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
