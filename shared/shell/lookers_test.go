package shell_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/shell"
)

// TestEachLookerIsTried holds testdata/lookers.txt, whose commands the keeper's tests run beside hostile
// configurations, to the table: a command of each program that may run unasked.
func TestEachLookerIsTried(t *testing.T) {
	text, err := os.ReadFile("testdata/lookers.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		j, err := shell.Judge(strings.TrimSpace(line), shell.Bash)
		if err != nil || j.Class != shell.ReadOnly {
			t.Errorf("%q is %s, %v", line, j.Class, err)
			continue
		}
		tried[j.Argv[0]] = true
	}
	shell.Lookers(func(name string) {
		if !tried[name] {
			t.Errorf("%s is not tried", name)
		}
	})
}
