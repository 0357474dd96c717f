package mutate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// half is a module with two tests. One notices a fault in Max, and one in another package notices a fault in Left.
var half = map[string]string{
	"go.mod":         "module example.com/moon\n\ngo 1.24\n",
	"functions/f.go": "package functions\n",
	"shared/a/a.go": `package a

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

var left int

func Left() int { step(); return left }

func step() { left++ }

func Lost(a, b string) string { return join(a, b) }

func join(a, b string) string { return a + b }

const Most = 7
`,
	"shared/a/a_test.go": `package a

import "testing"

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 {
		t.Error("not the larger one")
	}
}
`,
	"shared/b/b_test.go": `package b

import (
	"testing"

	"example.com/moon/shared/a"
)

func TestLeft(t *testing.T) {
	if a.Left() != 1 {
		t.Error("no step")
	}
}
`,
}

// TestSample plants all possible faults. One is noticed by its own package, one by an importer, and two by no test.
func TestSample(t *testing.T) {
	realpart.Long(t, "compiles a module many times")
	root := t.TempDir()
	for name, text := range half {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	r := proof.Trial("mutate", 1, &out)
	r.Verbose = true
	if err := sample(t.Context(), r, 10, root); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"held shared/a/a.go:4: a negated condition: noticed by TestMax\n",
		"held shared/a/a.go:12: a dropped call: noticed by TestLeft\n",
		"FINDING shared/a/a.go:16: swapped arguments: no test notices\n",
		"FINDING shared/a/a.go:20: a changed constant: no test notices\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
