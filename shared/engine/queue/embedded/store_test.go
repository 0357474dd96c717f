package embedded_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// opener is implemented by testing.T and rapid.T.
type opener interface {
	Fatal(...any)
	Error(...any)
	Cleanup(func())
}

var _ opener = (*testing.T)(nil)

// newMemory opens the embedded store in memory.
func newMemory(t opener) store.Store {
	st, err := storeembedded.OpenMemory(time.Now)
	return closing(t, st, err)
}

// openFile opens the embedded store in the directory.
func openFile(t opener, dir string) store.Store {
	st, err := storeembedded.Open(dir, time.Now)
	return closing(t, st, err)
}

func closing(t opener, st store.Store, err error) store.Store {
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// cut severs a process from the store: the queries and commits of a process that was killed do not happen.
func cut(s *faulty.Store) {
	s.Set(faulty.Of(func(c *faulty.Call) bool { return c.Method != faulty.Get }, faulty.Down))
}
