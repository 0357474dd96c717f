package embedded_test

import (
	"time"

	"github.com/countersign-run/countersign/shared/store"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// newMemory opens the embedded store in memory.
func newMemory(t cleanup.T) store.Store {
	st, err := storeembedded.OpenMemory(time.Now)
	return cleanup.Close(t, st, err)
}

// openFile opens the embedded store in the directory.
func openFile(t cleanup.T, dir string) store.Store {
	st, err := storeembedded.Open(dir, time.Now)
	return cleanup.Close(t, st, err)
}

// cut severs a process from the store: the queries and commits of a process that was killed do not happen.
func cut(s *faulty.Store) {
	s.Set(faulty.Of(func(c *faulty.Call) bool { return c.Method != faulty.Get }, faulty.Down))
}
