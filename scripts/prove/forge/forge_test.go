package forge

import (
	"os"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// TestForge tries each attack. An effect that no person decided about is a finding.
func TestForge(t *testing.T) { try(t, options{store: "embedded"}) }

// TestForgeOnFirestore tries every fourth attack on Firestore's emulator.
func TestForgeOnFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	try(t, options{store: "firestore", every: 4})
}

func try(t *testing.T, o options) {
	t.Helper()
	r := proof.Trial("forge", 1, os.Stdout)
	if err := execute(t.Context(), o, r); err != nil {
		t.Fatal(err)
	}
	if n := r.Findings(); n > 0 {
		t.Errorf("%d findings", n)
	}
}
