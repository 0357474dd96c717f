package embedded_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return memory(t, time.Now) })
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store { return file(t, t.TempDir(), time.Now) })
}

// A clock that stands still must not stop the versions.
func TestFrozenClock(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return memory(t, func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) })
	})
}

func memory(t testing.TB, now func() time.Time) *embedded.Store {
	t.Helper()
	st, err := embedded.OpenMemory(now)
	return opened(t, st, err)
}

func file(t testing.TB, dir string, now func() time.Time) *embedded.Store {
	t.Helper()
	st, err := embedded.Open(dir, now)
	return opened(t, st, err)
}

func opened(t testing.TB, st *embedded.Store, err error) *embedded.Store {
	t.Helper()
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
