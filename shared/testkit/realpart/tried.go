package realpart

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// Tried returns a function that skips a test if the part is installed but try fails, or fails the test if REQUIRE_ALL
// is 1. try runs once in a process, for all its tests.
func (p Part) Tried(try func(t *Trial)) func(t T) {
	said := sync.OnceValue(func() string { return tried(try) })
	return func(t T) {
		t.Helper()
		if said := said(); said != "" {
			p.Broken(t, said)
		}
	}
}

// Broken skips a test because the part is installed but does not work, or fails the test if REQUIRE_ALL is 1. said is
// the part's message.
func (p Part) Broken(t T, said string) {
	t.Helper()
	p.Absent(t, "it does not work here: "+said)
}

// A Trial acts as a test while a part is tried: it uses the part as a test does.
type Trial struct {
	said []string
	ends []func()
}

// tried returns the message with which a trial failed.
func tried(try func(t *Trial)) string {
	t := &Trial{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.end()
		try(t)
	}()
	<-done
	return strings.Join(t.said, "\n")
}

// end calls the registered functions, last one first, even if one of them ends the trial.
func (t *Trial) end() {
	for _, end := range t.ends {
		defer end()
	}
}

// Helper does nothing.
func (t *Trial) Helper() {}

// Errorf stores the message.
func (t *Trial) Errorf(format string, args ...any) {
	t.said = append(t.said, fmt.Sprintf(format, args...))
}

// Fatalf stores the message and ends the trial.
func (t *Trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf is Fatalf, because a part that lacks something does not work.
func (t *Trial) Skipf(format string, args ...any) { t.Fatalf(format, args...) }

// Cleanup registers a function that end calls; the last one is called first.
func (t *Trial) Cleanup(end func()) { t.ends = append(t.ends, end) }

// TempDir returns an empty directory, which is removed at the end.
func (t *Trial) TempDir() string {
	dir, err := os.MkdirTemp("", "trial")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Run runs a program of the part, and fails unless the program succeeds.
func (t *Trial) Run(cmd *exec.Cmd) {
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
}
