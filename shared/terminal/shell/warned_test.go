package shell_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// spellOut returns the lines that a line with {a,b} stands for. A brace without a comma stands for itself.
func spellOut(line string) (all []string) {
	parts, from, depth, quoted := []string(nil), 0, 0, false
	for i, r := range line {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted:
		case r == '{':
			if depth++; depth == 1 {
				parts, from = []string{line[:i]}, i+1
			}
		case r == ',' && depth == 1, r == '}' && depth == 1:
			parts, from = append(parts, line[from:i]), i+1
			if r == '}' {
				depth--
			}
			if r == '}' && len(parts) > 2 {
				for _, part := range parts[1:] {
					all = append(all, prefixed(parts[0]+part, spellOut(line[i+1:]))...)
				}
				return all
			}
		case r == '}' && depth > 0:
			depth--
		}
	}
	return []string{line}
}

func prefixed(start string, ends []string) (all []string) {
	for _, end := range ends {
		all = append(all, start+end)
	}
	return all
}

// TestDestructionWarnings holds the share of lines that are classified wrongly: those of testdata/destroys.txt delete
// or end something, those of testdata/spares.txt do not.
func TestDestructionWarnings(t *testing.T) {
	for name, destroys := range map[string]bool{"destroys": true, "spares": false} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		all, wrong := 0, []string(nil)
		for line := range strings.Lines(string(text)) {
			for _, command := range spellOut(strings.TrimSuffix(line, "\n")) {
				j, err := shell.Judge(command, shell.Bash)
				if err != nil {
					t.Errorf("%q: %v", command, err)
				}
				if all++; j.Has(shell.Destructive) != destroys {
					wrong = append(wrong, command)
				}
				if destroys && (j.Class == shell.ReadOnly || j.Repository != nil) {
					t.Errorf("%q would run unasked", command)
				}
			}
		}
		if t.Logf("%s: %d of %d are wrong: %q", name, len(wrong), all, wrong); all < 1000 || len(wrong)*50 > all {
			t.Errorf("%s: %d of %d are classified wrongly", name, len(wrong), all)
		}
	}
}
