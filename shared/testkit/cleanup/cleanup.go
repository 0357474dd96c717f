// Package cleanup closes what a test has opened.
package cleanup

import "io"

// T is the part of [testing.TB] that Close needs.
type T interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
	Cleanup(func())
}

// Close returns opened, and closes it when the test ends. It takes the results of a function that opens something: err
// fails the test.
func Close[C io.Closer](t T, opened C, err error) C {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}
