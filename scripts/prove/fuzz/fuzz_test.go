package fuzz

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tests holds three targets: one fails on each new input, one fails on its committed seed, and one passes.
const tests = `package moon

import "testing"

func FuzzNew(f *testing.F) {
	f.Add("seed")
	f.Fuzz(func(t *testing.T, s string) {
		if s != "seed" {
			t.Error("it is new")
		}
	})
}

func FuzzSeed(f *testing.F) {
	f.Add("seed")
	f.Fuzz(func(t *testing.T, s string) {
		if s == "seed" {
			t.Error("it is old")
		}
	})
}

func FuzzHolds(f *testing.F) {
	f.Add("seed")
	f.Fuzz(func(*testing.T, string) {})
}
`

// TestSearch checks that the search writes the input to the target's folder, and names the line that failed.
func TestSearch(t *testing.T) {
	realpart.Long(t, "fuzzes until it finds an input")
	t.Chdir(t.TempDir())
	if err := os.Mkdir("phase", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module example.com/moon\n\ngo 1.24\n",
		"phase/phase_test.go": tests} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for only, c := range map[string]struct {
		long, want string // want is a regular expression
		code       int
	}{
		"FuzzNew": {"10m", `FINDING phase FuzzNew: .*\n?.*phase_test.go:9: it is new\n(?s:.*)` +
			`written to phase/testdata/fuzz/FuzzNew/\w+: commit it with the fix\n`, proof.Found},
		"FuzzSeed":  {"10m", `FINDING phase FuzzSeed: (?s:.*)phase_test.go:18: it is old\n`, proof.Found},
		"FuzzHolds": {"1s", `phase FuzzHolds: \d+ executions\n(?s:.*) 0 findings, 1 held`, proof.Proven},
		"FuzzNone":  {"1s", "has a matching fuzz target", proof.Misused},
	} {
		var out strings.Builder
		args := []string{"fuzz", "./phase", "-only", only, "-for", c.long}
		if code := proof.Main(args, &out, &out, Proof()); code != c.code ||
			!regexp.MustCompile(c.want).MatchString(out.String()) {
			t.Errorf("%s: exit code %d:\n%s", only, code, out.String())
		}
	}
	if inputs, _ := filepath.Glob("phase/testdata/fuzz/*/*"); len(inputs) != 1 {
		t.Errorf("the inputs are %q", inputs)
	}
}

// TestOutOfTime checks that running out of time is not a finding, unless the output also has one.
func TestOutOfTime(t *testing.T) {
	const late = "fuzz: elapsed: 3s, execs: 12 (4/sec)\n--- FAIL: FuzzA (3.01s)\n    context deadline exceeded\nFAIL\n"
	const input = "    Failing input written to testdata/fuzz/FuzzA/1\n"
	if !outOfTime(late) || outOfTime(late+input) || outOfTime("FAIL\n") {
		t.Error("running out of time counts as a finding, or a finding does not")
	}
}
