package shell_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// linesOf returns the lines of a file in testdata.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// TestReadersWithoutWarning tests testdata/readers.txt: lines that only read, with words that delete something in other
// programs. No line has a warning. Each line runs without approval, unless it begins with "? ".
func TestReadersWithoutWarning(t *testing.T) {
	for _, line := range linesOf(t, "readers.txt") {
		command, asked := strings.CutPrefix(line, "? ")
		j, err := shell.Judge(command, shell.Bash)
		if err != nil || j.Has(shell.Destructive) || (j.Class != shell.ReadOnly && j.Repository == nil) != asked {
			t.Errorf("%q is %s: %+v (%v)", line, j.Class, j.Warnings, err)
		}
	}
}

// TestActsWithoutApproval tests testdata/acts.txt: lines of the same programs that change, run or connect something, or
// may do so. None runs without approval. A line that begins with "! " has a warning of destruction.
func TestActsWithoutApproval(t *testing.T) {
	for _, line := range linesOf(t, "acts.txt") {
		command, destroys := strings.CutPrefix(line, "! ")
		j, err := shell.Judge(command, shell.Bash)
		if err == nil && (j.Class == shell.ReadOnly || j.Repository != nil) {
			t.Errorf("%q would run without approval: %+v", command, j.Repository)
		}
		if destroys && !j.Has(shell.Destructive) {
			t.Errorf("%q is %s: %+v (%v)", command, j.Class, j.Warnings, err)
		}
	}
}
