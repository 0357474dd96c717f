package embedded_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	storeembedded "github.com/countersign-run/countersign/shared/store/embedded"
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

// severed is a process's connection to the store, which can be cut: the writes of a process that was killed do not
// happen.
type severed struct {
	store.Store
	cut atomic.Bool
}

func (s *severed) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	if s.cut.Load() {
		return nil, store.ErrUnavailable
	}
	return s.Store.Query(ctx, q)
}

func (s *severed) Commit(ctx context.Context, writes ...store.Write) ([]time.Time, error) {
	if s.cut.Load() {
		return nil, store.ErrUnavailable
	}
	return s.Store.Commit(ctx, writes...)
}
