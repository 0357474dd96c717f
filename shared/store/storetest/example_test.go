package storetest_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	inmemory "github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

// ownStore is a custom backend. Here it is the memory store, limited to the methods of the interface.
type ownStore struct{ store.Store }

// TestOwnStore is the only test that a backend needs. A backend that passes it keeps the promises on which Countersign
// relies.
func TestOwnStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store { return ownStore{inmemory.New(time.Now)} })
}
