package testkit

import "testing"

// Open is [New] for a test, with which the deployment ends. Its store is in a directory of the test's if o names none.
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
