package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestConsoleTypes has the TypeScript compiler check the console's modules by their JSDoc types.
func TestConsoleTypes(t *testing.T) {
	tsc := filepath.Join(os.Getenv("PLAYWRIGHT_DIR"), "node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		browsertest.Absent(t, "typescript (PLAYWRIGHT_DIR names where it is installed)")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		browsertest.Absent(t, "node")
	}
	if out, err := exec.CommandContext(t.Context(), node, tsc, "-p",
		"../../shared/web/jsconfig.json").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
