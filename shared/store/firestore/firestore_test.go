package firestore_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/scripts/emulators"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

func TestEmulator(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	storetest.Run(t, func(t testing.TB) store.Store { return open(t) })
}

// open gives a store of its own: any project id is an empty one to the emulator.
func open(t testing.TB, opts ...option.ClientOption) *firestore.Store {
	t.Helper()
	st, err := firestore.Open(t.Context(), "demo-"+strings.ToLower(rand.Text()), "", opts...)
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
