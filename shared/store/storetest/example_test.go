package storetest_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	inmemory "github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

// ownStore is a backend of one's own: here the one in memory, which is asked for nothing that it does not offer.
type ownStore struct{ store.Store }

// TestOwnStore is all the test that a backend of one's own needs: what passes keeps the promises that Countersign rests
// on.
func TestOwnStore(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store { return ownStore{inmemory.New(time.Now)} })
}
