package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestHelp runs each command under scripts with its help flag in an empty folder. The command prints its usage and an
// example, writes no file, and exits with 0.
func TestHelp(t *testing.T) {
	realpart.Long(t, "it links every command")
	programs := t.TempDir()
	for name, flag := range map[string]string{"actiongen": "-check", "ops": "", "package": "-verify", "plan": "confirm",
		"prove": "crash", "terraform": "TERRAFORM_CHECK_DIR", "function": "FUNCTION_TARGET", "dev/local": "-addr"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(programs, filepath.Base(name))
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../"+name)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("it does not build: %v\n%s", err, out)
			}
			for _, help := range []string{"-h", "--help"} {
				cmd := exec.CommandContext(t.Context(), program, help)
				cmd.Dir = t.TempDir()
				out, err := cmd.CombinedOutput()
				said := string(out)
				if err != nil || !strings.Contains(said, "usage: ") || !strings.Contains(said, "go run ./scripts/") ||
					!strings.Contains(said, flag) {
					t.Errorf("%s: %v, and it says\n%s", help, err, said)
				}
				if written, err := os.ReadDir(cmd.Dir); err != nil || len(written) > 0 {
					t.Errorf("%s writes %v (%v)", help, written, err)
				}
			}
		})
	}
}
