package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrAbsent means that a program that a proof needs is not installed.
var ErrAbsent = errors.New("a needed program is not installed")

// An Owner owns servers of the testkit, as a test does. A failure ends the [Attempt] that started the server.
type Owner struct {
	Dir   string
	n     int
	tasks []func()
}

// Helper does nothing.
func (o *Owner) Helper() {}

// Fatalf ends the attempt.
func (o *Owner) Fatalf(format string, args ...any) { Must(fmt.Errorf(format, args...)) }

// Skipf ends the attempt with [ErrAbsent].
func (o *Owner) Skipf(format string, args ...any) {
	Must(fmt.Errorf("%w: %s", ErrAbsent, fmt.Sprintf(format, args...)))
}

// Cleanup calls f at the end.
func (o *Owner) Cleanup(f func()) { o.tasks = append(o.tasks, f) }

// TempDir returns a new directory in Dir.
func (o *Owner) TempDir() string {
	o.n++
	dir := filepath.Join(o.Dir, fmt.Sprintf("own-%d", o.n))
	Must(os.Mkdir(dir, 0o700))
	return dir
}

// Cleaned ends the servers.
func (o *Owner) Cleaned() {
	for _, f := range o.tasks {
		f()
	}
}
