package firestore_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/store/storetest"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func TestEmulator(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	storetest.Run(t, func(t testing.TB) store.Store { return open(t) })
}

// open returns an empty store: the emulator creates a project for any id.
func open(t testing.TB, opts ...option.ClientOption) *firestore.Store {
	t.Helper()
	st, err := firestore.Open(t.Context(), "demo-"+strings.ToLower(rand.Text()), "", opts...)
	return cleanup.Close(t, st, err)
}

// A decorator moves the emulator's clock forward: existing versions stay, later ones are later.
func TestShiftedClock(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	st, forward := faulty.Shift(open(t))
	before, err := st.Commit(t.Context(), store.Create("runs/a", nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	forward(time.Hour)
	docs, err := st.Get(t.Context(), "runs/a")
	if err != nil || !docs[0].Version.Equal(before[0]) || docs[0].ReadTime.Sub(before[0]) < time.Hour {
		t.Fatalf("an hour after %v: %+v, %v", before[0], docs, err)
	}
	after, err := st.Commit(t.Context(), store.Update("runs/a", docs[0].Version, nil, nil))
	if err != nil || after[0].Sub(before[0]) < time.Hour {
		t.Fatalf("committed at %v, an hour after %v: %v", after, before, err)
	}
	if _, err := st.Commit(t.Context(), store.Update("runs/a", after[0], nil, nil)); err != nil {
		t.Fatal(err)
	}
}
