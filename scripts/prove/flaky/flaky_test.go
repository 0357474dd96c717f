package flaky

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tests is the test file of a module. One test fails only in the second round, and each round is recorded in a file.
const tests = `package moon

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestWanes(t *testing.T) {
	before, _ := os.ReadFile("rounds")
	if err := os.WriteFile("rounds", fmt.Appendf(before, "%d %v\n", runtime.GOMAXPROCS(0), testing.Short()), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(before), "\n") == 1 {
		t.Error("it is new")
	}
}

func TestShines(*testing.T) {}
`

// module creates a module of one package with these files, and changes to its root folder.
func module(t *testing.T, files map[string]string) {
	root := t.TempDir()
	files["go.mod"] = "module example.com/moon\n\ngo 1.24\n"
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
}

// prove runs the proof with the arguments.
func prove(args string) (code int, printed string) {
	var out strings.Builder
	code = proof.Main(strings.Fields("flaky "+args), &out, &out, Proof())
	return code, out.String()
}

// TestFlakyTestFound expects the failure with its round, seed and line.
func TestFlakyTestFound(t *testing.T) {
	module(t, map[string]string{"phase/phase_test.go": tests, "bare/bare.go": "package bare\n"})
	code, printed := prove("-n 3 -short -seed 7")
	if code != proof.Found {
		t.Fatalf("exit code %d:\n%s", code, printed)
	}
	for _, want := range []string{"round 1 of 3: GOMAXPROCS=1, -shuffle=7, 1 packages, 0 failures, in ",
		"FINDING phase TestWanes: in round 2: GOMAXPROCS=2 CHANGES_LATE=1000 go test -count=1 -shuffle=8 -short " +
			"./phase\n    phase_test.go:17: it is new\n",
		"round 2 of 3: GOMAXPROCS=2 CHANGES_LATE=1000, -shuffle=8, 1 packages, 1 failures, in ",
		"phase TestWanes failed in 1 of 3 rounds: 2\n", "flaky: 1 findings, 2 held, 0 skipped"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the report lacks %q:\n%s", want, printed)
		}
	}
	if rounds, err := os.ReadFile("phase/rounds"); string(rounds) != "1 true\n2 true\n1 true\n" {
		t.Errorf("the package's rounds are %q, %v", rounds, err)
	}
}

// TestTestsThatCannotRun checks that tests which cannot run are distinguished from tests that fail.
func TestTestsThatCannotRun(t *testing.T) {
	module(t, map[string]string{"half/half_test.go": "package half\n\nvar x int = \"\"\n",
		"bare/bare.go": "package bare\n"})
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"-n 1 ./half":  {proof.Found, "FINDING half: exit status 1\n"},
		"-n 1 ./bare":  {proof.Misused, "none of these packages has tests"},
		"-n 1 ./venus": {proof.Misused, "venus"},
	} {
		if code, printed := prove(args); code != want.code || !strings.Contains(printed, want.says) {
			t.Errorf("%s: exit code %d: %s", args, code, printed)
		}
	}
}
