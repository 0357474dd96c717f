package memory_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store { return memory.New(time.Now) })
}

// Versions increase even if the clock stands still.
func TestFrozenClock(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store {
		return memory.New(func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) })
	})
}
