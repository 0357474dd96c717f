package check_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/browsertest"
)

// TestConsoleTypes has the TypeScript compiler check the console's modules by their JSDoc types.
func TestConsoleTypes(t *testing.T) {
	node := browsertest.Node(t)
	tsc := filepath.Join(browsertest.Modules(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	if out, err := exec.CommandContext(t.Context(), node, tsc, "-p", "../../shared/web/jsconfig.json").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
