package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestConsoleTypes checks the console's modules with the TypeScript compiler, by their JSDoc types.
func TestConsoleTypes(t *testing.T) {
	node := browsertest.Node(t)
	tsc := filepath.Join(os.Getenv("PLAYWRIGHT_DIR"), "node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		realpart.Node.Absent(t, "typescript is not installed where PLAYWRIGHT_DIR says")
	}
	if out, err := exec.CommandContext(t.Context(), node, tsc, "-p",
		"../../shared/web/jsconfig.json").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
