package forge

import (
	"os"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// TestForge tries each attack. An effect that no person decided about is a finding.
func TestForge(t *testing.T) {
	r := proof.Trial("forge", 1, os.Stdout)
	if err := execute(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if n := r.Findings(); n > 0 {
		t.Errorf("%d findings", n)
	}
}
